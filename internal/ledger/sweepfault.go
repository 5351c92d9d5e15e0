package ledger

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"

	"idemscope/internal/flow"
)

// sweepError is a fault that no server reports.
type sweepError struct{ text flow.Text }

func (e *sweepError) Error() string   { return e.text.EN }
func (e *sweepError) Text() flow.Text { return e.text }

// Faults that a sweep finds by itself.
var (
	// ErrNeverCleaned: rows of such a table are business rows, or messages that wait.
	ErrNeverCleaned error = &sweepError{flow.T("tables of the presets state_machine and outbox are never cleaned; take the task out of the configuration",
		"预设 state_machine 与 outbox 的表绝不清理；请从配置中移除该任务")}
	// ErrReadOnly: the server takes no writes (any more).
	ErrReadOnly error = &sweepError{flow.T("the server is read-only; if it has become a replica, point mysql.address to the primary", "服务器为只读；如果它已成为从库，请将 mysql.address 指向主库")}
	// ErrAltered: a table is not the one with which the sweep began.
	ErrAltered error = &sweepError{flow.T("the table was altered while it was being cleaned; look at the plan and start again", "清理过程中表结构发生了变化；请重新查看计划后再执行")}
	// errMoreDue: a row has become a candidate since the others were locked.
	errMoreDue error = &sweepError{flow.T("another row came of age while the batch was archived, so it was taken back", "归档该批次期间又有行满足条件，因此该批次已回滚")}
	// errMismatch: rows changed in a way that locks make impossible.
	errMismatch error = &sweepError{flow.T("the numbers of rows copied and deleted differ, so nothing was changed; look for a trigger or a replaced table",
		"复制与删除的行数不一致，因此未做任何改动；请检查是否有触发器或表被替换")}
)

// Fault is what an error means for a sweep.
type Fault string

// The faults.
const (
	// FaultLock: a lock, a deadlock, the time limit or a change in between; another
	// try with a smaller batch may succeed.
	FaultLock Fault = "locked"
	// FaultLost: the connection is gone; a new session may go on.
	FaultLost Fault = "lost"
	// FaultReadOnly: the server takes no writes.
	FaultReadOnly Fault = "read_only"
	// FaultTaken: another janitor cleans the table.
	FaultTaken Fault = "lease_taken"
	// FaultAltered: a table is no longer what it was.
	FaultAltered Fault = "altered"
	// FaultArchive: the archive cannot take a row as it is.
	FaultArchive Fault = "archive"
	// FaultOther: going on would not help.
	FaultOther Fault = "failed"
)

// faults by the number of the server's error. Connections that an operator ended
// (1927, and 1053 of a shutdown) may come back; a single statement that somebody
// killed (1317) was meant to end the sweep.
var faults = map[uint16]Fault{
	1205: FaultLock, 1213: FaultLock, 1969: FaultLock, 3024: FaultLock, 3572: FaultLock,
	1040: FaultLost, 1053: FaultLost, 1158: FaultLost, 1159: FaultLost, 1160: FaultLost, 1161: FaultLost, 1927: FaultLost, 4031: FaultLost,
	1290: FaultReadOnly, 1792: FaultReadOnly, 1836: FaultReadOnly, 3100: FaultReadOnly,
	1054: FaultAltered, 1146: FaultAltered, 1176: FaultAltered, 1412: FaultAltered,
	1062: FaultArchive, 1136: FaultArchive, 1264: FaultArchive, 1265: FaultArchive, 1292: FaultArchive, 1364: FaultArchive,
	1366: FaultArchive, 1406: FaultArchive, 4025: FaultArchive,
}

// FaultOf tells what an error of a Sweeper or a SweepSession means. Whether the
// caller has ended the sweep is for the caller to know.
func FaultOf(err error) Fault {
	var taken *LeaseTaken
	var keeper *KeeperFault
	switch {
	case errors.As(err, &keeper):
		return FaultOther
	case errors.As(err, &taken):
		return FaultTaken
	case errors.Is(err, ErrReadOnly):
		return FaultReadOnly
	case errors.Is(err, ErrAltered):
		return FaultAltered
	case errors.Is(err, errMoreDue):
		return FaultLock
	}
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		if fault, ok := faults[server.Number]; ok {
			return fault
		}
		return FaultOther
	}
	if connectionEnded(err) {
		return FaultLost
	}
	return FaultOther
}

// connectionEnded reports whether the connection was lost, or could not be made.
func connectionEnded(err error) bool {
	var op *net.OpError
	for _, end := range []error{mysql.ErrInvalidConn, driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, end) {
			return true
		}
	}
	return errors.As(err, &op)
}
