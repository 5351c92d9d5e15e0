package ledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

func TestDialects(t *testing.T) {
	cases := []struct {
		version string
		dialect Dialect
		limit   string
	}{
		{"10.11.19-MariaDB-0+deb12u1", MariaDB, "max_statement_time = 2.5"},
		{"5.5.5-10.4.2-MariaDB-log", MariaDB, "max_statement_time = 2.5"},
		{"8.0.36", MySQL, "max_execution_time = 2500"},
		{"5.7.25-TiDB-v6.5.0", MySQL, "max_execution_time = 2500"},
	}
	for _, c := range cases {
		if got := dialectOf(c.version); got != c.dialect {
			t.Errorf("dialect of %s: %s", c.version, got)
		}
		statements := guardStatements(c.dialect, defaultLimit)
		if statements[0] != "SET SESSION TRANSACTION READ ONLY" {
			t.Errorf("%s: the first statement is %s", c.version, statements[0])
		}
		if last := statements[len(statements)-1]; !strings.HasSuffix(last, c.limit) {
			t.Errorf("%s: limit: %s", c.version, last)
		}
	}
}

func TestHiddenIndexesOfBothDialects(t *testing.T) {
	row := func(extra ...string) map[string]any {
		values := map[string]any{"index_name": []byte("uk"), "NON_UNIQUE": int64(0), "COLUMN_NAME": "biz_id", "INDEX_TYPE": "BTREE", "SUB_PART": nil}
		for i := 0; i < len(extra); i += 2 {
			values[extra[i]] = []byte(extra[i+1])
		}
		return values
	}
	cases := map[string]struct {
		row    map[string]any
		usable bool
	}{
		"no such feature":   {row(), true},
		"MariaDB visible":   {row("IGNORED", "NO"), true},
		"MariaDB ignored":   {row("IGNORED", "YES"), false},
		"MySQL visible":     {row("IS_VISIBLE", "YES", "EXPRESSION", ""), true},
		"MySQL invisible":   {row("IS_VISIBLE", "NO"), false},
		"hash (long) index": {row("INDEX_TYPE", "HASH"), false},
		"full text":         {row("INDEX_TYPE", "FULLTEXT"), false},
		"expression":        {row("COLUMN_NAME", ""), false},
	}
	for name, c := range cases {
		var s schema
		s.addPart(texts(c.row))
		if x := s.indexes[0]; x.usable != c.usable || !x.unique || x.name != "uk" || x.parts[0].prefix {
			t.Errorf("%s: %+v", name, x)
		}
	}
}

func TestTables(t *testing.T) {
	good := map[string][]string{
		"orders":                   {"shop.orders"},
		"other.orders":             {"other.orders"},
		"r_{00..02}":               {"shop.r_00", "shop.r_01", "shop.r_02"},
		"r_{8..11}":                {"shop.r_8", "shop.r_9", "shop.r_10", "shop.r_11"},
		"r_{008..010}x":            {"shop.r_008x", "shop.r_009x", "shop.r_010x"},
		"db_{0..1}.r_{00..01}":     {"db_0.r_00", "db_0.r_01", "db_1.r_00", "db_1.r_01"},
		"r_{0..0}":                 {"shop.r_0"},
		"订单":                       {"shop.订单"},
		"we`ird":                   {"shop.we`ird"},
		strings.Repeat("x", 64):    {"shop." + strings.Repeat("x", 64)},
		"idempotent_record_{1..3}": {"shop.idempotent_record_1", "shop.idempotent_record_2", "shop.idempotent_record_3"},
	}
	for pattern, want := range good {
		tables, err := parseTables(pattern, "shop")
		var got []string
		for _, table := range tables {
			got = append(got, table.String())
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", pattern, got, err)
		}
	}
	for _, pattern := range []string{"", ".", "a.", ".b", "a.b.c", "r_{5..1}", "r_{0..1024}", "r_{0..99}_{0..99}", "r_{a..b}", "r_{1..}", "a/b", strings.Repeat("x", 65), "r_{0..99999999999999999999}"} {
		if tables, err := parseTables(pattern, "shop"); err == nil {
			t.Errorf("%q gives %v", pattern, tables)
		} else if !strings.HasPrefix(err.Error(), "table: ") {
			t.Errorf("%q: the error does not name the key: %v", pattern, err)
		}
	}
}

func TestLiterals(t *testing.T) {
	cases := map[operand]string{
		{"ORD-1", false}:        "'ORD-1'",
		{"", false}:             "''",
		{"", true}:              "''",
		{"订单 1", false}:         "'订单 1'",
		{"o'; --", false}:       "'o''; --'",
		{`a\`, false}:           "_utf8mb4 0x615c",
		{"a\x00b", false}:       "_utf8mb4 0x610062",
		{"a\nb", false}:         "_utf8mb4 0x610a62",
		{"a\u202eb", false}:     "_utf8mb4 0x61e280ae62",
		{"a\u00a0b", false}:     "_utf8mb4 0x61c2a062",
		{"\xff", false}:         "_utf8mb4 0xff",
		{"\xff'", true}:         "0xff27",
		{"plain", true}:         "'plain'",
		{"é", true}:             "0xc3a9",
		{" two blanks ", false}: "' two blanks '",
	}
	for o, want := range cases {
		if got := literal(o); got != want {
			t.Errorf("%+v: %s, want %s", o, got, want)
		}
	}
	if got := quote("a`b"); got != "`a``b`" {
		t.Error(got)
	}
}

func TestStamps(t *testing.T) {
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	lordHowe, err := time.LoadLocation("Australia/Lord_Howe") // half an hour of daylight saving
	if err != nil {
		t.Fatal(err)
	}
	moscow, err := time.LoadLocation("Europe/Moscow") // moved its clocks back for good
	if err != nil {
		t.Fatal(err)
	}
	east := time.FixedZone("+08:00", 8*3600)
	cases := []struct {
		text  string
		zone  *time.Location
		state StampState
		want  string
	}{
		{"2025-01-15 10:00:00", time.UTC, StampOK, "2025-01-15T10:00:00Z"},
		{"2025-01-15 10:00:00.123456", time.UTC, StampOK, "2025-01-15T10:00:00.123456Z"},
		{"2025-01-15 10:00:00", east, StampOK, "2025-01-15T02:00:00Z"},
		{"2025-01-15", east, StampOK, "2025-01-14T16:00:00Z"},
		{"2025-07-01 12:00:00", newYork, StampOK, "2025-07-01T16:00:00Z"},
		{"2025-01-01 12:00:00", newYork, StampOK, "2025-01-01T17:00:00Z"},
		{"2025-11-02 00:59:59", newYork, StampOK, "2025-11-02T04:59:59Z"},
		{"2025-11-02 01:00:00", newYork, StampAmbiguous, "2025-11-02T06:00:00Z"},
		{"2025-11-02 01:59:59.999", newYork, StampAmbiguous, "2025-11-02T06:59:59.999Z"},
		{"2025-11-02 02:00:00", newYork, StampOK, "2025-11-02T07:00:00Z"},
		{"2025-03-09 01:59:59", newYork, StampOK, "2025-03-09T06:59:59Z"},
		{"2025-03-09 02:00:00", newYork, StampZero, ""},
		{"2025-03-09 02:59:59", newYork, StampZero, ""},
		{"2025-03-09 03:00:00", newYork, StampOK, "2025-03-09T07:00:00Z"},
		{"2025-04-06 01:45:00", lordHowe, StampAmbiguous, "2025-04-05T15:15:00Z"},
		{"2025-04-06 01:15:00", lordHowe, StampOK, "2025-04-05T14:15:00Z"},
		{"2025-10-05 02:15:00", lordHowe, StampZero, ""},
		{"2014-10-26 01:30:00", moscow, StampAmbiguous, "2014-10-25T22:30:00Z"},
		{"9999-12-31 23:59:59", east, StampOK, "9999-12-31T15:59:59Z"},
		{"0000-00-00 00:00:00", time.UTC, StampZero, ""},
		{"0000-00-00 00:00:00.000000", time.UTC, StampZero, ""},
		{"0000-00-00", time.UTC, StampZero, ""},
		{"2025-02-00 10:00:00", time.UTC, StampZero, ""},
		{"2025-02-31 10:00:00", time.UTC, StampZero, ""},
		{"", time.UTC, StampZero, ""},
		{"yesterday", time.UTC, StampZero, ""},
	}
	for _, c := range cases {
		s := parseLocal(c.text, c.zone)
		if s.State != c.state || s.Text != c.text {
			t.Errorf("%s in %s: %+v", c.text, c.zone, s)
		}
		if got := s.Time.UTC().Format(time.RFC3339Nano); c.want == "" && !s.Time.IsZero() || c.want != "" && got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.text, c.zone, got, c.want)
		}
	}
	epochs := map[string]string{
		"1736935200": "2025-01-15T10:00:00Z", "1736935200123": "2025-01-15T10:00:00.123Z", "1736935200123456": "2025-01-15T10:00:00.123456Z",
		"0": "", "-5": "", "99999999999999999999": "",
	}
	for text, want := range epochs {
		s := stampOf(&column{kind: "bigint"}, text, east)
		if ok := s.State == StampOK; ok != (want != "") || (ok && s.Time.Format(time.RFC3339Nano) != want) || s.Text != text {
			t.Errorf("epoch %s: %+v", text, s)
		}
	}
	if s := stampOf(&column{kind: "timestamp"}, "2025-01-15 10:00:00", east); s.Text != "2025-01-15 10:00:00+00:00" || s.Time.Hour() != 10 {
		t.Errorf("timestamp: %+v", s)
	}
}

func TestCut(t *testing.T) {
	text := &column{kind: "varchar", charset: "utf8mb4", limit: 3}
	binary := &column{kind: "varbinary", limit: 3}
	cases := []struct {
		c           *column
		value, kept string
		cut         bool
	}{
		{text, "abc", "abc", false}, {text, "abcd", "abc", true}, {text, "中文字", "中文字", false}, {text, "中文字符", "中文字", true}, {text, "😀😀😀😀", "😀😀😀", true},
		{binary, "中", "中", false}, {binary, "中x", "中", true}, {&column{kind: "text"}, strings.Repeat("x", 9999), strings.Repeat("x", 9999), false},
	}
	for _, c := range cases {
		if kept, cut := c.c.cut(c.value); kept != c.kept || cut != c.cut {
			t.Errorf("%s %q: %q %v", c.c.kind, c.value, kept, cut)
		}
	}
}

func TestReckonClaimsNothingFromUncertainStamps(t *testing.T) {
	now := time.Date(2025, 1, 15, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) Stamp { return Stamp{State: StampOK, Time: now.Add(-d)} }
	null, zero := Stamp{State: StampNull}, Stamp{State: StampZero}
	cases := []struct {
		name     string
		row      Row
		age, run string
	}{
		{"updated decides", Row{Phase: "completed", Created: at(time.Minute), Updated: at(20 * time.Second)}, "20s", "40s"},
		{"completed when updated is missing", Row{Phase: "completed", Created: at(time.Minute), Completed: at(50 * time.Second)}, "50s", "10s"},
		{"null completed of a failed row", Row{Phase: "failed", Created: at(time.Minute), Completed: null}, "1m0s", "-"},
		{"processing has no run time", Row{Phase: "processing", Created: at(time.Minute), Updated: at(time.Second)}, "1s", "-"},
		{"future", Row{Phase: "processing", Created: at(time.Minute), Updated: at(-time.Hour)}, "-1h0m0s", "-"},
		{"zero update hides the age", Row{Phase: "completed", Created: at(time.Minute), Updated: zero}, "-", "-"},
		{"ambiguous", Row{Phase: "processing", Created: at(time.Minute), Updated: Stamp{State: StampAmbiguous, Time: now}}, "-", "-"},
		{"zero creation", Row{Phase: "completed", Created: zero, Updated: at(time.Second)}, "1s", "-"},
		{"ended before it began", Row{Phase: "completed", Created: at(time.Second), Updated: at(time.Minute)}, "1m0s", "-"},
		{"no stamp at all", Row{Phase: "completed"}, "-", "-"},
	}
	for _, c := range cases {
		c.row.reckon(now)
		age, run := "-", "-"
		if c.row.AgeKnown {
			age = c.row.Age.String()
		}
		if c.row.RunTimeKnown {
			run = c.row.RunTime.String()
		}
		if age != c.age || run != c.run {
			t.Errorf("%s: age %s run %s, want %s and %s", c.name, age, run, c.age, c.run)
		}
	}
}

func TestServerOptions(t *testing.T) {
	good := ServerOptions{Name: "main", Address: "127.0.0.1", Database: "shop", User: "u", Password: "hunter2"}
	bad := map[string]func(*ServerOptions){
		"no name":        func(o *ServerOptions) { o.Name = "" },
		"no database":    func(o *ServerOptions) { o.Database = "" },
		"no user":        func(o *ServerOptions) { o.User = "" },
		"no place":       func(o *ServerOptions) { o.Address = "" },
		"two places":     func(o *ServerOptions) { o.Socket = "/run/x.sock" },
		"many conns":     func(o *ServerOptions) { o.MaxConns = 51 },
		"negative conns": func(o *ServerOptions) { o.MaxConns = -1 },
	}
	for name, change := range bad {
		o := good
		change(&o)
		if _, err := NewServer(o); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := NewServer(good)
	if err != nil {
		t.Fatal(err)
	}
	if s.place != "127.0.0.1:3306" || s.conns != 4 {
		t.Errorf("place %s, conns %d", s.place, s.conns)
	}
	if text := fmt.Sprintf("%+v %#v", s, s); strings.Contains(text, "hunter2") {
		t.Error("the server prints its password")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestExplainOfWhatNoServerHereSays(t *testing.T) {
	cases := []struct {
		err  error
		want string
	}{
		{nil, ""},
		{&mysql.MySQLError{Number: 3024}, "the server ended the statement at its time limit (MySQL error 3024)"},
		{&mysql.MySQLError{Number: 1040}, "the server has no connection left (MySQL error 1040)"},
		{&mysql.MySQLError{Number: 1143}, "this user may not read the table: grant SELECT on it (MySQL error 1143)"},
		{&mysql.MySQLError{Number: 9999, Message: "odd"}, "MySQL error 9999: odd"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "db.internal", IsNotFound: true}}, "the host name db.internal does not resolve"},
		{&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 3306}, Err: os.ErrDeadlineExceeded}, "10.0.0.1:3306 does not answer"},
		{&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 3306}, Err: syscall.EHOSTUNREACH}, "10.0.0.1:3306 cannot be reached: no route to host"},
		{&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, "the connection was lost"},
		{mysql.ErrInvalidConn, "the connection was lost"},
		{driver.ErrBadConn, "the connection was lost"},
		{io.ErrUnexpectedEOF, "the connection was lost"},
		{context.DeadlineExceeded, "no answer in time"},
		{mysql.ErrNoTLS, "TLS failed: TLS requested but server does not support TLS"},
		{errors.New("odd"), "MySQL could not be read: odd"},
	}
	for _, c := range cases {
		err := c.err
		if err != nil {
			err = fmt.Errorf("look up a key: %w", err)
		}
		if got := Explain(err).EN; got != c.want {
			t.Errorf("%v: %s", c.err, got)
		}
	}
}
