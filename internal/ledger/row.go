package ledger

import (
	"time"

	"idemscope/internal/flow"
)

// Row is one record as it stands in the table.
type Row struct {
	// Table is "database.table" of the shard that holds the row.
	Table string
	// ID is the primary key as decimal text. Empty when the table has no single integer primary key.
	ID string
	// BizType and BizID are the stored bytes. BizType of a table that holds
	// one type only is the configured constant.
	BizType, BizID string
	// Exact: the stored bytes are those that were asked for. False: MySQL
	// considers the row equal, its bytes differ (case, padding, normal form).
	Exact bool
	// Status is the stored word or number. "present" where presence alone means completed.
	Status string
	// Phase is what Status means.
	Phase flow.Phase
	// Created, Updated and Completed are the mapped time columns.
	Created, Updated, Completed Stamp
	// Archived is when the row was moved. Only rows of an archive that has a
	// column archived_at have it.
	Archived Stamp
	// Age is the database's clock minus the last sign of life (Updated, else
	// Completed, else Created). Valid only when AgeKnown. Negative when the
	// stamp lies in the database's future.
	Age      time.Duration
	AgeKnown bool
	// RunTime is the last sign of life minus Created, for a completed or failed
	// row. Its resolution is that of the columns. Valid only when RunTimeKnown.
	RunTime      time.Duration
	RunTimeKnown bool
	// IDFills: the biz_id has as many characters as its column keeps, so a longer
	// one may have been cut. Never set for an id of several columns.
	IDFills bool
	// Result, Attempts and Worker are optional columns; nil when not mapped or NULL.
	Result, Attempts, Worker *string
	// ResultHidden: there is a Result, and it was taken out, because whoever reads
	// on may not see it. The ledger itself takes nothing out.
	ResultHidden bool
}

// LastSign is the stamp from which Age counts.
func (r Row) LastSign() Stamp {
	for _, s := range []Stamp{r.Updated, r.Completed, r.Created} {
		if s.State != StampMissing && s.State != StampNull {
			return s
		}
	}
	return Stamp{State: StampMissing}
}

// Stamp is one time column of a row.
type Stamp struct {
	State StampState
	// Text is the stored value, in the zone of the column.
	Text string
	// Time is the instant. Zero unless State is StampOK or StampAmbiguous; of
	// an ambiguous local time it is the later instant (the younger reading).
	Time time.Time
}

// StampState says how far a time column can be trusted.
type StampState string

const (
	// StampOK: one instant.
	StampOK StampState = "ok"
	// StampMissing: the table has no such column, or it is not mapped.
	StampMissing StampState = ""
	// StampNull: the column is NULL.
	StampNull StampState = "null"
	// StampZero: a zero date, or a date that does not exist. No instant.
	StampZero StampState = "zero"
	// StampAmbiguous: a local time that happened twice (daylight saving ended).
	StampAmbiguous StampState = "ambiguous"
)

// Found is the answer to a look-up of one key.
type Found struct {
	flow.Observation
	// Rows are all rows that MySQL matches to the key, exact ones first. Never assume one.
	Rows []Row
	// DBNow is the database's clock when it answered.
	DBNow time.Time
	// Width is how many characters the biz_id column keeps; 0 when unlimited or composite.
	Width int
	// TooLong: the asked biz_id has more characters than Width. Rows then hold
	// what the id would be cut to, if such a row exists (never Exact).
	TooLong bool
	// Unstorable: the character set of the id's columns cannot hold the asked id,
	// so that an insert fails or stores other characters.
	Unstorable bool
	// Replica: the server is a replica or read-only. A row that is missing there
	// may exist on its primary: the state is then Unknown, never Absent.
	Replica bool
	// Lag is how far a replica is behind its source, by its own account and in
	// whole seconds. Valid only when LagKnown.
	Lag      time.Duration
	LagKnown bool
	// Neighbours are records of other keys that could be meant, or that explain
	// why this one is missing. At most a few of each kind.
	Neighbours []Neighbour
	// Archive is what the table of archived records shows; nil when the ledger has none.
	Archive *Archive
	// ByPresence: the table has no status column; a row means completed, and a
	// run in progress has none yet.
	ByPresence bool
}

// NeighbourKind says how another key resembles the asked one.
type NeighbourKind string

const (
	// OtherType: the same biz_id under another biz_type.
	OtherType NeighbourKind = "other_type"
	// OtherVersion: the same id with another version at its end (order:7:v1, order:7:v2).
	OtherVersion NeighbourKind = "other_version"
	// OtherSpelling: an id that reads alike and whose bytes MySQL tells apart:
	// case, blanks at its ends, composed or decomposed letters.
	OtherSpelling NeighbourKind = "other_spelling"
)

// Word is the kind for people.
func (k NeighbourKind) Word() flow.Text {
	switch k {
	case OtherType:
		return flow.T("same id, another biz_type", "相同 ID，另一业务类型")
	case OtherVersion:
		return flow.T("another version of the id", "该 ID 的其他版本")
	case OtherSpelling:
		return flow.T("another spelling of the id", "该 ID 的其他写法")
	}
	return flow.Text{EN: string(k), ZH: string(k)}
}

// Neighbour is a record of another key.
type Neighbour struct {
	Kind NeighbourKind
	Row
}

// Archive is what the table of archived records shows of the key.
type Archive struct {
	flow.Observation
	// Rows are those of exactly the asked bytes.
	Rows []Row
}
