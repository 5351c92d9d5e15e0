package doctor

import (
	"fmt"
	"strings"
	"testing"

	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// The user that changes something may change rows, and nothing else.
func TestTheActingUserOfMySQL(t *testing.T) {
	w := newWard(t, soundTable)
	user := "act_" + strings.TrimPrefix(w.user, "reader_")
	w.Exec(t, fmt.Sprintf("CREATE USER '%s'@'%%' IDENTIFIED BY 'secret-of-act'", user))
	t.Cleanup(func() { w.Exec(t, fmt.Sprintf("DROP USER '%s'@'%%'", user)) })
	sql := func(text string) {
		t.Helper()
		w.Exec(t, fmt.Sprintf(text, w.Name, user))
		w.opts.ActMySQL = map[string]*ledger.Server{"main": openServer(t, ledger.ServerOptions{Address: w.Addr, Database: w.Name, User: user, Password: "secret-of-act"})}
	}
	sql("GRANT SELECT ON `%s`.* TO '%s'@'%%'")
	r := w.examine(t)
	wantProblems(t, r, "mysql_act_narrow ledger orders")
	if p := problem(t, r, "mysql_act_narrow"); !strings.Contains(p.Command, "GRANT SELECT, UPDATE ON `"+w.Name+"`.`idempotent_record` TO") {
		t.Errorf("%+v", p)
	}
	w.flow().Rerun = flow.RerunNever // then nothing is ever set back
	wantProblems(t, w.examine(t))
	w.flow().Rerun = flow.RerunManual
	sql("GRANT UPDATE (status, update_time) ON `%s`.idempotent_record TO '%s'@'%%'")
	wantProblems(t, w.examine(t))
	sql("GRANT INSERT, DELETE ON `%s`.* TO '%s'@'%%'") // as the cleanup needs it
	wantProblems(t, w.examine(t))
	sql("GRANT DROP, CREATE ON `%s`.* TO '%s'@'%%'")
	r = w.examine(t)
	wantProblems(t, r, "mysql_act_wide mysql main")
	if p := problem(t, r, "mysql_act_wide"); !strings.Contains(p.Seen.EN, "CREATE, DROP") || strings.Contains(p.Seen.EN, "INSERT") {
		t.Errorf("%+v", p)
	}
}

func TestTheActingUserOfRedis(t *testing.T) {
	master, admin := startMaster(t)
	w := newWard(t, soundTable)
	w.addRedis(t, lockstore.Options{Addresses: []string{master.Addr}, User: "observer", Password: "pass-of-observer"})
	for rules, want := range map[string][]string{releasing: nil, releasing + " +info +acl|whoami +acl|getuser": nil, "+@all": {"redis_act_wide redis main"}} {
		do(t, admin, append([]any{"ACL", "SETUSER", "act", "reset", "on", ">pass-of-act", "~*"}, toAny(strings.Fields(rules))...)...)
		s, err := lockstore.New(lockstore.Options{Name: "main", Timeout: patience, Addresses: []string{master.Addr}, User: "act", Password: "pass-of-act"})
		if err != nil {
			t.Fatal(err)
		}
		w.opts.ActRedis = map[string]*lockstore.Store{"main": s}
		wantProblems(t, w.examine(t), want...)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
