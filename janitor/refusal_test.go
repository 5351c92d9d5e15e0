package janitor

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/lab/servers"
	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

// codes lists the refusals of a plan.
func codes(p Plan) (all []string) {
	for _, r := range p.Refusals {
		all = append(all, r.Code)
	}
	return all
}

// refusals lists all that speaks against the task apart from its tables and queues.
func (t *Task) refusals(s ledger.SweepState) (all []Refusal) {
	for _, a := range t.ask(s) {
		all = append(all, a.found...)
	}
	return all
}

func TestEveryTableThatMustNotBeCleanedIsRefused(t *testing.T) {
	const columns = "biz_id VARCHAR(64), biz_type VARCHAR(64), status INT, create_time DATETIME NULL, update_time DATETIME NULL"
	for want, c := range map[string]struct {
		sql     []string
		archive bool
		spec    ledger.MappingSpec
		says    string
	}{
		"no_integer_key":         {sql: []string{"CREATE TABLE idempotent_record (" + columns + ", PRIMARY KEY (biz_type, biz_id))"}, says: "partitions"},
		"no_integer_key, too":    {sql: []string{"CREATE TABLE idempotent_record (id INT AUTO_INCREMENT, " + columns + ", PRIMARY KEY (id, status))"}, says: "partitions"},
		"nothing_completed":      {sql: []string{record}, spec: ledger.MappingSpec{Status: map[string][]string{"completed": {"done"}}}, says: "status.completed"},
		"no_time_column":         {sql: []string{record}, spec: ledger.MappingSpec{Columns: map[string]string{"created": "-", "updated": "-"}}, says: "columns.updated"},
		"no_time_column, either": {sql: []string{record, "ALTER TABLE idempotent_record MODIFY update_time VARCHAR(30)"}, says: "DATETIME"},
		"engine":                 {sql: []string{record + " ENGINE Aria"}, says: "ENGINE = InnoDB"},
		"foreign_keys":           {sql: []string{record, "CREATE TABLE child (r BIGINT UNSIGNED, FOREIGN KEY (r) REFERENCES idempotent_record (id) ON DELETE CASCADE)"}, says: "child"},
		"triggers":               {sql: []string{record, "CREATE TRIGGER watch BEFORE DELETE ON idempotent_record FOR EACH ROW SET @gone = OLD.id"}, says: "watch"},
		"triggers, of archive":   {sql: []string{record, recordArchive, plainArchive, "CREATE TRIGGER watch BEFORE INSERT ON idempotent_record_archive FOR EACH ROW SET NEW.status = 0"}, archive: true, says: "watch"},
		"archive_missing":        {sql: []string{record}, archive: true, says: "LIKE"},
		"archive_unique":         {sql: []string{record, recordArchive}, archive: true, says: "DROP INDEX `uk_biz`, ADD INDEX `uk_biz` (`biz_type`, `biz_id`)"},
		"archive_unique, no key": {sql: []string{record, recordArchive, plainArchive, "ALTER TABLE idempotent_record_archive MODIFY id BIGINT UNSIGNED NOT NULL, DROP PRIMARY KEY"}, archive: true, says: "ADD UNIQUE KEY (`id`)"},
		"archive_engine":         {sql: []string{record, recordArchive, plainArchive, "ALTER TABLE idempotent_record_archive ENGINE Aria"}, archive: true, says: "ENGINE = InnoDB"},
		"archive_differs":        {sql: []string{record, recordArchive, plainArchive, "ALTER TABLE idempotent_record_archive MODIFY biz_id VARCHAR(127) NOT NULL"}, archive: true, says: "MODIFY COLUMN `biz_id` varchar(128)"},
	} {
		t.Run(want, func(t *testing.T) {
			code, _, _ := strings.Cut(want, ",")
			db := testkit.MySQL(t)
			for _, q := range c.sql {
				db.Exec(t, q)
			}
			p := recordsIn(db)
			p.spec = c.spec
			if c.archive {
				p.archive = "idempotent_record_archive"
			}
			r := sweepNow(t, hire(t, p.task(t)), Refused)
			if got := codes(r.Plan); len(got) != 1 || got[0] != code || !strings.Contains(r.Why.EN, c.says) || r.Why.ZH == "" || r.Exit() != 4 {
				t.Errorf("refused for %q: %s", got, r.Why.EN)
			}
		})
	}
}

func TestATableThatCannotBeReadIsNotGuessedAt(t *testing.T) {
	db := testkit.MySQL(t)
	r := sweepNow(t, hire(t, recordsIn(db).task(t)), Unread)
	if r.Exit() != 3 || !strings.Contains(r.Why.EN, "no such table") {
		t.Errorf("exit %d: %s", r.Exit(), r.Why.EN)
	}
	p := recordsIn(db)
	p.addr = "127.0.0.1:1"
	if r := sweepNow(t, hire(t, p.task(t)), Unread); r.Exit() != 3 {
		t.Errorf("exit %d: %s", r.Exit(), r.Why.EN)
	}
}

func TestWhatSpeaksAgainstAServerIsRefused(t *testing.T) {
	_, p := ready(t, true, 1)
	task := p.task(t)
	good := ledger.SweepState{Binlog: "ROW"}
	if all := task.refusals(good); len(all) != 0 {
		t.Fatalf("refused: %+v", all)
	}
	for want, s := range map[string]ledger.SweepState{
		"read_only":           {ReadOnly: true},
		"replica":             {Replica: true},
		"clock_skew, ahead":   {Skew: maxSkew + time.Second},
		"clock_skew, behind":  {Skew: -maxSkew - 2*time.Second, Doubt: time.Second},
		"unsafe_binlog":       {Binlog: "STATEMENT"},
		", mixed binlog":      {Binlog: "MIXED"},
		", skew within doubt": {Skew: maxSkew + time.Second, Doubt: 2 * time.Second},
	} {
		code, _, _ := strings.Cut(want, ",")
		got := ""
		for _, r := range task.refusals(s) {
			got += r.Code
		}
		if got != code {
			t.Errorf("%s: refused for %q", want, got)
		}
	}
	task.Open = nil
	if all := task.refusals(good); len(all) != 1 || all[0].Code != "act_missing" || !strings.Contains(all[0].Text.EN, "mysql.main.act") {
		t.Errorf("%+v", all)
	}
}

func TestARetentionBelowWhatAFlowNeedsIsRefused(t *testing.T) {
	for name, f := range map[string]flow.Flow{
		"lock":        {Name: "f", Lock: &flow.RedisKey{TTL: week}},
		"marker":      {Name: "f", Marker: &flow.RedisKey{TTL: 2 * week}},
		"ack_timeout": {Name: "f", Queue: &flow.Queue{AckTimeout: week}},
		"stale_after": {Name: "f", StaleAfter: week},
	} {
		task := Task{Retain: week, Flows: []flow.Flow{{Name: "fine", StaleAfter: time.Minute}, f}}
		if all := task.withRetention(); len(all) != 1 || all[0].Code != "retention" || !strings.Contains(all[0].Text.EN, name) {
			t.Errorf("%s: %+v", name, all)
		}
		task.Retain = 3 * week
		if all := task.withRetention(); len(all) != 0 {
			t.Errorf("%s: %+v", name, all)
		}
	}
}

func TestAStatementBinlogIsSweptInOrderAndNeverArchived(t *testing.T) {
	private := testkit.StartMariaDB(t, servers.MariaDBOptions{Args: []string{"--log-bin=binlog", "--server-id=1", "--binlog-format=STATEMENT"}})
	admin, err := sql.Open("mysql", "root@tcp("+private.Addr+")/?multiStatements=true")
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if _, err := admin.Exec("CREATE DATABASE shop; USE shop; " + record + "; " + recordArchive + "; " + plainArchive + `;
		INSERT INTO idempotent_record SELECT seq, seq, 'a', 2, '2020-01-01', '2020-01-01' FROM seq_1_to_100`); err != nil {
		t.Fatal(err)
	}
	p := place{addr: private.Addr, database: "shop", table: "idempotent_record", preset: "idempotent_record"}
	if r := sweepNow(t, hire(t, p.task(t)), Done); r.Gone() != 99 {
		t.Errorf("%d rows", r.Gone())
	}
	p.archive = "idempotent_record_archive"
	if r := sweepNow(t, hire(t, p.task(t)), Refused); r.Plan.Refusals[0].Code != "unsafe_binlog" {
		t.Errorf("%q", codes(r.Plan))
	}
}
