package ledger

import (
	"strings"
	"testing"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

// TestGrantsOfManyKinds reads lines as MariaDB and MySQL show them.
func TestGrantsOfManyKinds(t *testing.T) {
	for _, c := range []struct {
		lines  string
		reads  bool // shop.orders
		writes string
	}{
		{"GRANT USAGE ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*0123456789ABCDEF'", false, ""},
		{"GRANT SELECT ON *.* TO `u`@`%`", true, ""},
		{"GRANT SELECT, PROCESS, SLAVE MONITOR ON *.* TO `u`@`%`", true, ""},
		{"GRANT SELECT, SHOW VIEW ON `shop`.* TO `u`@`%`", true, ""},
		{"GRANT SELECT ON `shop`.`orders` TO `u`@`%`", true, ""},
		{"GRANT SELECT ON `shop`.`other` TO `u`@`%`", false, ""},
		{"GRANT SELECT (`id`, `status`) ON `shop`.`orders` TO `u`@`%`", true, ""},
		{"GRANT SELECT ON `sh\\_p`.* TO `u`@`%`", false, ""},
		{"GRANT SELECT ON `sh_p`.* TO `u`@`%`", true, ""},
		{"GRANT SELECT ON `s%`.* TO `u`@`%`", true, ""},
		{"GRANT SELECT, INSERT (`id`) ON `shop`.`orders` TO `u`@`%`", true, "INSERT (...) ON `shop`.`orders`"},
		{"GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION\nGRANT PROXY ON ''@'%' TO 'root'@'localhost' WITH GRANT OPTION", true, "ALL PRIVILEGES, GRANT OPTION ON *.*; PROXY, GRANT OPTION ON ''@'%'"},
		{"GRANT SELECT ON `a TO b ON c`.* TO `u`@`%`", false, ""},
		{"GRANT `reporting`@`%` TO `u`@`%`\nSET DEFAULT ROLE `reporting` FOR `u`@`%`", false, ""},
		{"GRANT EXECUTE ON PROCEDURE `shop`.`p` TO `u`@`%`", false, "EXECUTE ON PROCEDURE `shop`.`p`"},
		{"GRANT BACKUP_ADMIN,BINLOG_ADMIN ON *.* TO `u`@`%`", false, "BACKUP_ADMIN, BINLOG_ADMIN ON *.*"},
	} {
		var g Grants
		for line := range strings.Lines(c.lines) {
			g.add(strings.TrimRight(line, "\n"))
		}
		if got := strings.Join(g.Writes(), "; "); got != c.writes || g.Reads("shop", "orders") != c.reads {
			t.Errorf("%s\n writes %q, reads %t", c.lines, got, g.Reads("shop", "orders"))
		}
		if strings.Contains(strings.Join(g.Writes(), "")+strings.Join(g.Roles, ""), "012345") {
			t.Error("a password's hash is kept")
		}
	}
}

// TestASurveyOnlyReads: information_schema, SHOW and bounded SELECTs.
func TestASurveyOnlyReads(t *testing.T) {
	db, l := records(t)
	insertRecord(t, db, "pay", "1", 2)
	insertRecord(t, db, "refund", "2", 9)
	s := l.Survey(soon(t))
	if len(s.Tables) != 1 || s.Tables[0].Recent == nil {
		t.Fatalf("%+v", s)
	}
	got := s.Tables[0]
	r := got.Recent
	if got.Name() != db.Name+".idempotent_record" || got.IDColumn != "biz_id" || got.IDWidth != 128 || r.Rows != 2 || r.Newest != 2 || r.Oldest != 1 ||
		r.Unmapped != 1 || r.Filling != 0 || !r.Local || r.KeyColumn != "id" || strings.Join(r.Types, " ") != "refund pay" || r.Ahead != 0 || r.Fresh != 2 || !near(r.DBNow.Sub(r.Latest), 60e9) {
		t.Errorf("%+v\n%+v", got, r)
	}
	server := l.Server()
	set, err := server.Settings(soon(t))
	if err != nil || set.Dialect != MariaDB || !set.Strict() || set.Step != 1 || set.ReadOnly || !near(set.ClockAhead, 0) || set.BinlogFormat != "" || !set.ZoneKnown || set.Zone != 0 {
		t.Errorf("%+v %v", set, err)
	}
	if r, err := server.Replication(soon(t), set.Dialect); err != nil || r.Channels != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if g, err := server.Grants(soon(t)); err != nil || !g.Unchecked {
		t.Errorf("%+v %v", g, err)
	}
	if server.Remote() || server.Place() != db.Addr || server.Database() != db.Name || server.DeclaredReplica() {
		t.Errorf("%+v", server)
	}
}

func TestASurveyOfATableThatIsNotThere(t *testing.T) {
	s := openServer(t, testkit.MySQL(t))
	got := openLedger(t, s, "nowhere", "idempotent_record", MappingSpec{}).Survey(soon(t))
	if !got.Tables[0].Hidden || got.Tables[0].Unread.ZH == "" || len(got.Problems) != 1 || got.Problems[0].Code != "missing_table" {
		t.Errorf("%+v", got)
	}
	proxy := testkit.NewProxy(t, "127.0.0.1:1")
	proxy.Drop(true)
	gone := openServer(t, testkit.MySQL(t), func(o *ServerOptions) { o.Address = proxy.Addr })
	got = openLedger(t, gone, "nowhere", "idempotent_record", MappingSpec{}).Survey(soon(t))
	if got.Tables[0].Hidden || got.Tables[0].Unread.Empty() {
		t.Errorf("%+v", got)
	}
	for _, ask := range []func() error{
		func() error { _, err := gone.Settings(soon(t)); return err },
		func() error { _, err := gone.Grants(soon(t)); return err },
		func() error { _, err := gone.Replication(soon(t), MariaDB); return err },
	} {
		if err := ask(); Explain(err) == (flow.Text{}) {
			t.Error("a server that is down answers")
		}
	}
}
