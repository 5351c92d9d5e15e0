package ledger

import "idemscope/internal/flow"

// preset is a table shape that is common in the field.
type preset struct {
	columns map[string]string
	// optional are roles whose column name differs from house to house: without
	// the column the role is unmapped and Check says so.
	optional    []string
	words       map[flow.Phase][]string
	needsStatus bool
}

var (
	runWords = map[flow.Phase][]string{
		flow.Processing: {"processing"},
		flow.Completed:  {"completed"},
		flow.Failed:     {"failed"},
	}
	messageColumns = map[string]string{
		roleBizType: "message_type", roleBizID: "message_id", roleStatus: "status", roleResult: "result",
		roleCreated: "created_at", roleCompleted: "completed_at",
	}
)

// presets by name. The empty name is a mapping by hand.
var presets = map[string]preset{
	"": {},
	"idempotent_record": {
		columns: map[string]string{
			roleBizType: "biz_type", roleBizID: "biz_id", roleStatus: "status",
			roleCreated: "create_time", roleUpdated: "update_time",
		},
		words: map[flow.Phase][]string{flow.Processing: {"1"}, flow.Completed: {"2"}, flow.Failed: {"3"}},
	},
	"message_deduplication": {columns: messageColumns, optional: []string{roleResult}, words: runWords},
	"message_idempotence":   {columns: messageColumns, optional: []string{roleResult}, words: runWords},
	"message_processed": {
		columns: map[string]string{
			roleBizType: "biz_type", roleBizID: "message_id", roleStatus: "status", roleCreated: "processed_at",
		},
		optional: []string{roleStatus},
		words: map[flow.Phase][]string{
			flow.Processing: {"processing"},
			flow.Completed:  {"completed", "processed", "success"},
			flow.Failed:     {"failed"},
		},
	},
	"consume_log": {
		columns: map[string]string{roleBizID: "biz_id", roleCreated: "handle_time"},
	},
	"composite": {
		columns:  map[string]string{roleCreated: "created_at"},
		optional: []string{roleCreated},
	},
	"state_machine": {
		columns: map[string]string{
			roleBizID: "order_no", roleStatus: "status", roleCreated: "created_at", roleUpdated: "updated_at",
		},
		optional: []string{roleCreated, roleUpdated},
		words: map[flow.Phase][]string{
			flow.NotStarted: {"pending"},
			flow.Completed:  {"paid", "shipped", "completed"},
		},
		needsStatus: true,
	},
	"outbox": {
		columns: map[string]string{
			roleBizID: "message_id", roleStatus: "status", roleAttempts: "retry_count",
			roleCreated: "created_at", roleUpdated: "updated_at", roleCompleted: "sent_at",
		},
		optional: []string{roleAttempts, roleCreated, roleUpdated, roleCompleted},
		words: map[flow.Phase][]string{
			flow.NotStarted: {"pending"},
			flow.Completed:  {"sent"},
			flow.Failed:     {"failed"},
		},
		needsStatus: true,
	},
}
