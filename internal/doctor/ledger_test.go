package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
	"idemscope/internal/lab/servers"
	"idemscope/internal/ledger"
	"idemscope/internal/testkit"
)

// TestAnUnsoundTableIsReported breaks one thing of a sound table at a time. The
// SQL that the report gives mends it.
func TestAnUnsoundTableIsReported(t *testing.T) {
	change := func(old, new string) string {
		if !strings.Contains(soundTable, old) {
			t.Fatalf("%q is not in the table", old)
		}
		return strings.Replace(soundTable, old, new, 1)
	}
	const idType = "biz_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
	for name, c := range map[string]struct {
		ddl  string
		want []string
		// mends: running the given SQL leaves no problem.
		mends bool
	}{
		"no unique key":        {change("UNIQUE KEY uk_biz", "KEY idx_biz"), []string{"no_unique_key"}, true},
		"no index at all":      {"(" + soundColumns + ")", []string{"no_unique_key", "no_lookup_index"}, false},
		"unique with the time": {change("(biz_type, biz_id)", "(biz_type, biz_id, create_time)"), []string{"unique_key_too_wide"}, false},
		"partitioned by time": {"(" + strings.Replace(soundColumns, " PRIMARY KEY", "", 1) + `, PRIMARY KEY (id, create_time), UNIQUE KEY uk_biz (biz_type, biz_id, create_time))
			PARTITION BY RANGE (TO_DAYS(create_time)) (PARTITION p0 VALUES LESS THAN MAXVALUE)`, []string{"unique_key_too_wide"}, false},
		"nullable":       {change(idType+" NOT NULL", idType+" NULL"), []string{"unique_key_nullable"}, true},
		"prefix":         {change("biz_id))", "biz_id(8)))"), []string{"unique_key_prefix"}, true},
		"folds case":     {change("utf8mb4_nopad_bin", "utf8mb4_uca1400_nopad_as_ci"), []string{"folds_case"}, true},
		"ignores blanks": {change("utf8mb4_nopad_bin", "utf8mb4_bin"), []string{"ignores_padding"}, true},
		"char":           {change("biz_id VARCHAR", "biz_id CHAR"), []string{"ignores_padding"}, true},
		"utf8mb3":        {change("CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", "CHARACTER SET utf8mb3 COLLATE utf8mb3_nopad_bin"), []string{"utf8mb3"}, true},
		"MyISAM":         {soundTable + " ENGINE=MyISAM", []string{"not_transactional"}, true},
		"text key":       {change("id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT", "id VARCHAR(36) NOT NULL"), []string{"no_integer_key"}, false},
		"odd time":       {change("update_time DATETIME NOT NULL", "update_time VARCHAR(20) NOT NULL"), []string{"time_column"}, false},
		"missing column": {change("status TINYINT NOT NULL, ", ""), []string{"ledger_missing"}, false},
		"no table":       {"", []string{"ledger_missing"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWard(t, c.ddl)
			var want []string
			for _, code := range c.want {
				want = append(want, code+" ledger orders")
			}
			if !strings.Contains(c.want[0], "missing") {
				want = append(want, neverSeen(c.want)...)
			}
			r := w.examine(t)
			wantProblems(t, r, want...)
			for _, code := range c.want {
				p := problem(t, r, code)
				if c.mends != (p.Command != "") && code != "no_lookup_index" && code != "no_unique_key" {
					t.Errorf("%s gives the SQL %q", code, p.Command)
				}
				if !c.mends {
					continue
				}
				for _, statement := range strings.Split(p.Command, ";\n") {
					w.Exec(t, statement)
				}
			}
			if c.mends {
				wantProblems(t, w.examine(t), neverSeen(nil)...)
			}
		})
	}
}

// neverSeen: the tables here are empty, so the type of the flow was never seen,
// where the types can be listed at all.
func neverSeen(codes []string) []string {
	for _, code := range codes {
		if code == "no_lookup_index" || code == "no_index" {
			return nil
		}
	}
	return []string{"types_never_seen flow payments"}
}

func TestAUniqueKeyWithoutTheTypeIsReportedWhereTypesShareTheTable(t *testing.T) {
	w := newWard(t, strings.Replace(soundTable, "(biz_type, biz_id)", "(biz_id), KEY idx_type (biz_type)", 1))
	w.record(t, "pay", "1", 2)
	wantProblems(t, w.examine(t))
	w.flow().BizTypes = []string{"pay", "refund"}
	w.record(t, "refund", "2", 2)
	wantProblems(t, w.examine(t), "type_outside_unique_key ledger orders")
}

func TestIDsThatFillTheirColumnAreReported(t *testing.T) {
	w := newWard(t, soundTable)
	full := strings.Repeat("订", 64)
	w.record(t, "pay", full, 2)
	r := w.examine(t)
	wantProblems(t, r, "id_fills_column ledger orders")
	if p := problem(t, r, "id_fills_column"); !strings.Contains(p.Seen.EN, "1 of the newest 2 ids have the 64 characters that biz_id keeps") || !strings.Contains(p.Seen.ZH, "最新 2 个 ID 中有 1 个达到了 biz_id 的上限 64 个字符") {
		t.Errorf("%+v", p.Seen)
	}
	// Ids of one length, in strict mode, are made that way.
	w.Exec(t, "DELETE FROM idempotent_record WHERE biz_id = 'seen-1'")
	wantProblems(t, w.examine(t))
}

func TestTheEndOfThePrimaryKeyIsSeenComing(t *testing.T) {
	for name, c := range map[string]struct {
		kind   string
		id     uint64
		before uint64 // the id of a day ago; 0 for none
		want   string
	}{
		"plenty":                   {"INT UNSIGNED", 1000, 0, ""},
		"half, and slow":           {"INT UNSIGNED", 2_200_000_000, 2_199_999_000, ""},
		"half, and fast":           {"INT UNSIGNED", 2_200_000_000, 2_100_000_000, "id_space_ends"},
		"half, gone within a year": {"INT UNSIGNED", 2_200_000_000, 2_190_000_000, "id_space_shrinks"},
		"signed":                   {"INT", 2_100_000_000, 0, "id_space_ends"},
		"a fifth is left":          {"SMALLINT UNSIGNED", 53_000, 0, "id_space_shrinks"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWard(t, strings.Replace(soundTable, "BIGINT UNSIGNED", c.kind, 1))
			const insert = "INSERT INTO idempotent_record VALUES (?, ?, 'pay', 2, UTC_TIMESTAMP() - INTERVAL ? HOUR, UTC_TIMESTAMP() - INTERVAL ? HOUR)"
			if c.before > 0 {
				w.Exec(t, insert, c.before, "before", 25, 25)
			}
			w.Exec(t, insert, c.id, "last", 0, 0)
			r := w.examine(t)
			if c.want == "" {
				wantProblems(t, r)
				return
			}
			wantProblems(t, r, c.want+" ledger orders")
			t.Log(problem(t, r, c.want).Seen.EN, problem(t, r, c.want).Seen.ZH)
		})
	}
}

func TestInsertsThatAreMostlyRefusedAreReported(t *testing.T) {
	w := newWard(t, soundTable)
	w.Exec(t, "DELETE FROM idempotent_record")
	for i := range 60 {
		w.Exec(t, "INSERT INTO idempotent_record VALUES (?, ?, 'pay', 2, UTC_TIMESTAMP(), UTC_TIMESTAMP())", 100+9*i, fmt.Sprint("few-", i))
	}
	wantProblems(t, w.examine(t))
	w.Exec(t, "DELETE FROM idempotent_record")
	for i := range 60 {
		w.Exec(t, "INSERT INTO idempotent_record VALUES (?, ?, 'pay', 2, UTC_TIMESTAMP(), UTC_TIMESTAMP())", 10000+20*i, fmt.Sprint("many-", i))
	}
	r := w.examine(t)
	wantProblems(t, r, "ids_burned ledger orders")
	if p := problem(t, r, "ids_burned"); !strings.Contains(p.Seen.EN, "the newest 60 records used 1181 ids") {
		t.Error(p.Seen.EN)
	}
}

func TestAWrongTimeZoneIsReported(t *testing.T) {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	w := newWard(t, soundTable)
	insert := func(hours int) {
		w.Exec(t, "DELETE FROM idempotent_record")
		w.Exec(t, "INSERT INTO idempotent_record (biz_type, biz_id, status, create_time, update_time) VALUES ('pay', '1', 2, UTC_TIMESTAMP() + INTERVAL ? HOUR, UTC_TIMESTAMP() + INTERVAL ? HOUR)", hours, hours)
	}
	insert(8) // written in Shanghai's time, read as UTC
	r := w.examine(t)
	wantProblems(t, r, "zone_ahead ledger orders")
	if p := problem(t, r, "zone_ahead"); !strings.Contains(p.Seen.EN, "1 of the newest 1 records are ahead of the database's clock, the last one by ") || !strings.Contains(p.Seen.EN, "read as UTC") {
		t.Error(p.Seen.EN)
	}
	// One broken row among others says nothing.
	for i := range 3 {
		w.record(t, "pay", fmt.Sprint("now-", i), 2)
	}
	wantProblems(t, w.examine(t))
	zone := w.server.Zone()
	if zone != time.UTC {
		t.Fatal(zone)
	}
	// Read in Shanghai's zone all is well, and what is written in UTC looks old.
	w.server = openServer(t, ledger.ServerOptions{Address: w.Addr, Database: w.Name, User: w.User, Password: w.Password, Zone: shanghai})
	w.addLedger(t, "orders", "idempotent_record", "idempotent_record", ledger.MappingSpec{})
	testkit.Eventually(t, 10*time.Second, func() bool { return len(w.examine(t).Problems) == 1 }, "it is not well: %q", words(w.examine(t)))
	wantProblems(t, w.examine(t), "mysql_rights_wide mysql main") // the root user
	insert(0)
	wantProblems(t, w.examine(t), "mysql_rights_wide mysql main", "zone_behind ledger orders")
	// Old stamps alone prove nothing: what was written just now may be a deletion.
	w.Exec(t, "UPDATE idempotent_record SET create_time = create_time - INTERVAL 17 MINUTE, update_time = update_time - INTERVAL 17 MINUTE")
	wantProblems(t, w.examine(t), "mysql_rights_wide mysql main")
}

func TestRecordsThatMeanNothingAreReported(t *testing.T) {
	w := newWard(t, soundTable)
	w.record(t, "pay", "9", 9)
	r := w.examine(t)
	wantProblems(t, r, "records_unreadable ledger orders")
	if p := problem(t, r, "records_unreadable"); !strings.Contains(p.Seen.EN, "of the newest 2 records 1 have an unmapped status and 0 a date") {
		t.Error(p.Seen.EN)
	}
}

func TestTypesThatNoFlowNamesAreReported(t *testing.T) {
	w := newWard(t, soundTable)
	w.record(t, "Pay", "1", 2) // another spelling, which MySQL may take for the same
	wantProblems(t, w.examine(t))
	w.record(t, "<script>\u202e", "1", 2)
	r := w.examine(t)
	wantProblems(t, r, "types_unclaimed ledger orders")
	if p := problem(t, r, "types_unclaimed"); p.Seen.EN != `<script>\u202e` {
		t.Errorf("%q", p.Seen.EN)
	}
	w.opts.Flows = append(w.opts.Flows, flow.Flow{Name: "rest", Rest: true, Ledger: "orders", OnProcessing: flow.Retry})
	wantProblems(t, w.examine(t))
}

// TestTypesAreTakenFromTheNewestRowsWithoutAnIndex: they cannot be listed there.
func TestTypesAreTakenFromTheNewestRowsWithoutAnIndex(t *testing.T) {
	w := newWard(t, strings.Replace(soundTable, "(biz_type, biz_id)", "(biz_id, biz_type)", 1))
	w.record(t, "other", "1", 2)
	wantProblems(t, w.examine(t), "types_unclaimed ledger orders")
}

func TestShardsWithTheSameFaultAreOneProblem(t *testing.T) {
	w := newWard(t, "")
	for i := range 4 {
		ddl := soundTable
		if i > 0 {
			ddl = strings.Replace(soundTable, "BIGINT UNSIGNED", "TINYINT UNSIGNED", 1)
		}
		w.Exec(t, fmt.Sprintf("CREATE TABLE part_%d %s", i, ddl))
		w.Exec(t, fmt.Sprintf("INSERT INTO part_%d VALUES (250, 'a', 'pay', 2, UTC_TIMESTAMP(), UTC_TIMESTAMP())", i))
	}
	w.addLedger(t, "orders", "part_{0..3}", "idempotent_record", ledger.MappingSpec{})
	r := w.examine(t)
	wantProblems(t, r, "id_space_ends ledger orders")
	if p := problem(t, r, "id_space_ends"); !strings.Contains(p.Seen.EN, "part_1: 2.0 % of the ids of id (tinyint(3) unsigned) are left (and 2 more tables)") {
		t.Error(p.Seen.EN)
	}
	w.Exec(t, "DROP TABLE part_2")
	wantProblems(t, w.examine(t), "id_space_ends ledger orders", "ledger_missing ledger orders")
}

func TestTheReadingUserMayReadAndNothingElse(t *testing.T) {
	w := newWard(t, soundTable)
	sql := func(text string) { w.Exec(t, fmt.Sprintf(text, w.Name, w.user)) }
	sql("GRANT INSERT, UPDATE (status) ON `%s`.idempotent_record TO '%s'@'%%'")
	r := w.examine(t)
	wantProblems(t, r, "mysql_rights_wide mysql main")
	if p := problem(t, r, "mysql_rights_wide"); !strings.Contains(p.Seen.EN, "INSERT, UPDATE (...) ON `"+w.Name+"`.`idempotent_record`") || strings.Contains(fmt.Sprint(p), "PASSWORD '*") {
		t.Errorf("%+v", p)
	}
	sql("REVOKE INSERT, UPDATE (status) ON `%s`.idempotent_record FROM '%s'@'%%'")
	wantProblems(t, w.examine(t))
	// Without SELECT the table looks as if it were not there.
	sql("REVOKE SELECT ON `%s`.* FROM '%s'@'%%'")
	w.Exec(t, "CREATE TABLE other (id INT)")
	sql("GRANT SELECT ON `%s`.other TO '%s'@'%%'")
	r = w.examine(t)
	wantProblems(t, r, "mysql_rights_narrow ledger orders")
	if p := problem(t, r, "mysql_rights_narrow"); !strings.Contains(p.Command, "GRANT SELECT ON `"+w.Name+"`.`idempotent_record` TO") {
		t.Errorf("%+v", p)
	}
	// SELECT on the columns is enough.
	sql("GRANT SELECT (id, biz_id, biz_type, status, create_time, update_time) ON `%s`.idempotent_record TO '%s'@'%%'")
	if words := words(w.examine(t)); strings.Contains(strings.Join(words, " "), "rights") {
		t.Errorf("%q", words)
	}
	// Without the right to ask for replication nothing is claimed of it.
	w.Exec(t, fmt.Sprintf("REVOKE SLAVE MONITOR ON *.* FROM '%s'@'%%'", w.user))
	w.reconnect(t)
	r = w.examine(t)
	if len(r.Unsure) != 1 || r.Unsure[0].Code != "replica_as_truth" || r.Exit() != 3 {
		t.Errorf("%+v", r.Unsure)
	}
}

// TestServersThatAreSetUpBadly starts servers of its own, without users.
func TestServersThatAreSetUpBadly(t *testing.T) {
	for name, c := range map[string]struct {
		args    []string
		replica bool
		want    string
	}{
		"not strict":        {[]string{"--sql-mode=NO_ENGINE_SUBSTITUTION"}, false, "mysql_not_strict"},
		"statements logged": {[]string{"--log-bin=binlog", "--server-id=7", "--binlog-format=STATEMENT"}, false, "binlog_statement"},
		"rows logged":       {[]string{"--log-bin=binlog", "--server-id=7", "--binlog-format=ROW"}, false, ""},
		"read-only":         {[]string{"--read-only"}, false, "replica_as_truth"},
		"declared replica":  {[]string{"--read-only"}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			own := testkit.StartMariaDB(t, servers.MariaDBOptions{Args: c.args})
			w := newWard(t, soundTable)
			w.server = openServer(t, ledger.ServerOptions{Address: own.Addr, Database: "information_schema", User: "root", Replica: c.replica})
			w.opts.Ledgers = map[string]*ledger.Ledger{}
			w.addLedger(t, "orders", "information_schema.PLUGINS", "consume_log", ledger.MappingSpec{BizType: "pay", Columns: map[string]string{"biz_id": "PLUGIN_NAME"}})
			r := w.examine(t)
			var got []string
			for _, p := range r.Problems {
				if p.Subject.Kind == KindMySQL && p.Code != "mysql_rights_wide" {
					got = append(got, p.Code)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if p := problem(t, r, "mysql_rights_wide"); !strings.Contains(p.Seen.EN, "skip-grant-tables") {
				t.Error(p.Seen.EN)
			}
		})
	}
}
