package draft

import (
	"fmt"
	"slices"
	"time"

	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
)

// Facts are what was found. A store that nobody named is nil.
type Facts struct {
	MySQL  *MySQL
	Redis  *Redis
	Broker *Broker
}

// Password says where the running program finds a password. The password
// itself is never part of a draft.
type Password struct {
	// Variable of the environment, or File with an absolute path. Both are empty
	// when there is no password.
	Variable, File string
}

// MySQL is a database and what was found in it.
type MySQL struct {
	// Address is host:port, Socket a path; one of them is set.
	Address, Socket string
	Database, User  string
	Password        Password
	// Problem says why it could not be read to the end; empty when it could.
	Problem flow.Text
	// Tables is how many tables were looked at; Cut: there are more.
	Tables  int
	Cut     bool
	Ledgers []Sampled
	Ignored []Ignored
	// ZoneMinutes is by how much the server's own zone is ahead of UTC, if known.
	ZoneMinutes int
	ZoneKnown   bool
	// Ahead is by how much columns without a zone are ahead of UTC in the newest
	// rows, one value for each row.
	Ahead []time.Duration
}

// Redis is a Redis and what was found in it.
type Redis struct {
	// Address is host:port.
	Address string
	DB      int
	User    string
	// Cluster: the server is a node of a cluster.
	Cluster  bool
	Password Password
	Problem  flow.Text
	// Sample is what the walk saw, Probed what exists of the keys that the default shapes
	// would give the newest rows.
	Sample lockstore.KeySample
	Probed []lockstore.SampledKey
	// Counted are the biz_types for which instrumented consumers count.
	Counted []string
}

// Broker is a RabbitMQ and what was found in it.
type Broker struct {
	// Management is the URL of the management API.
	Management  string
	Vhost, User string
	Password    Password
	Problem     flow.Text
	Found       rabbitmq.Discovery
}

// zone is the zone in which the application writes columns without one.
type zone struct {
	text        string
	why, doubts flow.Text
}

const (
	// zoneStep: zones differ by whole quarters of an hour, and no zone is
	// further ahead than maxZone.
	zoneStep = 15 * time.Minute
	maxZone  = 14 * time.Hour
	// zoneSlack is by how much the clocks of two machines may differ.
	zoneSlack = 5 * time.Minute
)

// zone guesses by the server's own zone, unless the newest rows would then lie
// in the future.
func (m *MySQL) zone() zone {
	z := zone{text: "+00:00", doubts: flow.T("the server does not tell its time zone: check this", "服务器没有给出时区：请核对")}
	minutes := 0
	if m.ZoneKnown {
		minutes = m.ZoneMinutes
		z = zone{text: offset(minutes), why: flow.T("the server's own time zone; wrong if the application writes local times of another zone", "服务器自身的时区；若应用写入的是其他时区的本地时间则不正确")}
	}
	ahead := slices.Sorted(slices.Values(m.Ahead))
	if len(ahead) == 0 {
		return z
	}
	median := ahead[len(ahead)/2]
	over := median - time.Duration(minutes)*time.Minute
	if over <= zoneSlack || median > maxZone+zoneSlack {
		return z
	}
	steps := (median - zoneSlack + zoneStep - 1) / zoneStep
	return zone{text: offset(int((steps * zoneStep).Minutes())), why: flow.T(
		"the newest rows would lie in the future in the server's own zone", "按服务器自身的时区，最新的行会落在未来"),
		doubts: flow.T("at least this far ahead of UTC: check this", "至少比 UTC 早这么多：请核对")}
}

func offset(minutes int) string {
	sign := '+'
	if minutes < 0 {
		sign, minutes = '-', -minutes
	}
	return fmt.Sprintf("%c%02d:%02d", sign, minutes/60, minutes%60)
}
