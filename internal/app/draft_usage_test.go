package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"idemscope/internal/testkit"
)

// declareQueues makes queues as the administrator of a vhost.
func declareQueues(t *testing.T, v *testkit.Vhost, names ...string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, name := range names {
		body, err := json.Marshal(map[string]any{"durable": true})
		if err != nil {
			t.Fatal(err)
		}
		address := fmt.Sprintf("%s/api/queues/%s/%s", v.Management, url.PathEscape(v.Name), url.PathEscape(name))
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth(v.Admin, v.AdminPassword)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode >= 300 {
			t.Fatalf("declare %q: %s", name, response.Status)
		}
	}
}

func TestAnExistingFileIsLeftAloneUnlessForced(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	d := newDrafting(t)
	d.mysql(db)
	writeFile(t, d.Output, "mine")
	if exit, text := d.run(t); exit != 4 || text != "mine" || !strings.Contains(d.out.String(), "--force") {
		t.Errorf("exit code %d, file %q\n%s", exit, text, &d.out)
	}
	d.Force = true
	if exit, text := d.run(t); exit != 1 || !strings.Contains(text, "idempotent_record:") {
		t.Errorf("forced: exit code %d, file %q", exit, text)
	}
	if info, err := os.Stat(d.Output); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of the file changed: %v, %v", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(d.Output), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	d = newDrafting(t)
	d.mysql(db)
	if err := os.Symlink("/nonexistent", d.Output); err != nil {
		t.Fatal(err)
	}
	if exit, _ := d.run(t); exit != 4 {
		t.Errorf("a dangling link: exit code %d", exit)
	}
}

func TestOnATerminalNothingIsWrittenWithoutAYes(t *testing.T) {
	db := testkit.MySQL(t)
	db.Exec(t, "CREATE TABLE idempotent_record "+recordTable)
	for answer, written := range map[string]bool{"y\n": true, "YES\n": true, "是\n": true, "n\n": false, "\n": false, "": false, "yes please\n": false} {
		d := newDrafting(t)
		d.mysql(db)
		d.Yes, d.Terminal, d.In = false, true, strings.NewReader(answer)
		exit, text := d.run(t)
		if want := map[bool]int{true: 1, false: 4}[written]; exit != want || (text != "") != written {
			t.Errorf("answer %q: exit code %d, file of %d bytes", answer, exit, len(text))
		}
		if !strings.Contains(d.out.String(), "Write this to") || !strings.Contains(d.out.String(), "idempotent_record") {
			t.Errorf("answer %q: nothing was shown before the question:\n%s", answer, &d.out)
		}
	}
}

func TestWrongUsageNamesTheRemedyAndNoPassword(t *testing.T) {
	for want, change := range map[string]func(*InitOptions){
		"--mysql user@host:port/database": func(o *InitOptions) { o.MySQL = "" },
		"add --yes":                       func(o *InitOptions) { o.Yes = false },
		"MYSQL_PASSWORD":                  func(o *InitOptions) { o.MySQL = "root:s3cret@127.0.0.1:3306/shop" },
		"--mysql: it looks like":          func(o *InitOptions) { o.MySQL = "127.0.0.1:3306/shop" },
		"user@/path/to/mysqld.sock":       func(o *InitOptions) { o.MySQL = "root@127.0.0.1:99999/shop" },
		"--redis: it looks like":          func(o *InitOptions) { o.Redis = "127.0.0.1:6379/zero" },
		"REDIS_PASSWORD":                  func(o *InitOptions) { o.Redis = "user:s3cret@127.0.0.1:6379" },
		"RABBIT_PASSWORD":                 func(o *InitOptions) { o.RabbitMQ = "http://monitor:s3cret@127.0.0.1:15672" },
		"--rabbitmq: it looks like":       func(o *InitOptions) { o.RabbitMQ = "127.0.0.1:15672" },
		"password file cannot be read":    func(o *InitOptions) { o.MySQLPassword = NewCredential("X", "", "/nonexistent/file") },
	} {
		d := newDrafting(t)
		d.MySQL = "root@127.0.0.1:1/shop"
		change(&d.InitOptions)
		_, err := Init(t.Context(), d.InitOptions)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error()+d.out.String(), "s3cret") {
			t.Errorf("want %q, got %v", want, err)
		}
		if _, err := os.Stat(d.Output); !os.IsNotExist(err) {
			t.Errorf("%s: a file was written", want)
		}
	}
}

func TestTargetsAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]string{
		"idemscope@db:3307/shop":                "idemscope|db:3307||shop",
		"idemscope@db/shop":                     "idemscope|db:3306||shop",
		"a@b@db/shop":                           "a@b|db:3306||shop",
		"root@/run/mysqld/mysqld.sock/shop":     "root||/run/mysqld/mysqld.sock|shop",
		"root@[::1]:3306/shop":                  "root|[::1]:3306||shop",
		"root@[fe80::1]/shop":                   "root|[fe80::1]:3306||shop",
		"root@db:3306/":                         "",
		"@db:3306/shop":                         "",
		"root@/shop":                            "",
		"root@db:port/shop":                     "",
		"mysql://root@db:3306/shop/extra slash": "",
	} {
		var m mysqlTarget
		got := ""
		if m.parse(text) == nil {
			got = strings.Join([]string{m.User, m.Address, m.Socket, m.Database}, "|")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"r:6380/3": "|r:6380|3", "r": "|r:6379|0", "me@r": "me|r:6379|0", "r/": "", "r/-1": "", ":6379": ""} {
		var r redisTarget
		got := ""
		if r.parse(text) == nil {
			got = fmt.Sprintf("%s|%s|%d", r.User, r.Address, r.DB)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"https://m@h:15671/prefix/": "m|https://h:15671/prefix", "http://m@h": "m|http://h", "http://h:15672": "", "ftp://m@h": "", "http://m@h?x=1": ""} {
		var b rabbitTarget
		got := ""
		if b.parse(text, "") == nil {
			got = b.User + "|" + b.Management
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
