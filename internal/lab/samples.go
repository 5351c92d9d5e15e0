package lab

import (
	"strings"
	"time"

	"idemscope/internal/flow"
)

// Sample is one prepared key and the verdict that it stands for.
type Sample struct {
	Flow    string
	BizType string
	BizID   string
	// Verdict is its code, Layer the layer that failed.
	Verdict string
	Layer   flow.Layer
	// Story says what happened to the key.
	Story flow.Text
}

// prepared is a sample with what it leaves in the stores.
type prepared struct {
	Sample
	records []oldRecord
	// lock and marker are nil when the key has none.
	lock, marker *oldKey
	// waiting and dead: a message of the key lies in the work queue or among the dead letters.
	waiting, dead bool
}

// oldRecord is a record made some time ago.
type oldRecord struct {
	// bizID is the id that was written where it is not the sample's.
	bizID string
	// status is the table's own word.
	status string
	// age is how long ago the run began; silent is how long ago the record last changed (negative: in the future).
	age, silent time.Duration
}

// oldKey is a Redis key that was set some time ago.
type oldKey struct {
	value string
	// age is how long ago it was set; its TTL is what is left of the flow's.
	age time.Duration
	// endless: it has no TTL.
	endless bool
}

// Status words of the record tables.
const (
	statusProcessing = "1"
	statusCompleted  = "2"
	statusFailed     = "3"
)

const (
	longPrefix = "SO-2025-PARTNER-CALLBACK-"
	// recordWidth is how many characters of a biz_id the record tables keep.
	recordWidth = 128
)

// samples lists the prepared keys, the oldest record first. None of them changes for hours. Without a broker some
// verdicts are weaker, because where a message is cannot be told.
func samples(broker bool) []prepared {
	longID := longPrefix + strings.Repeat("0123456789", 12) + "-RETRY-1"
	withBroker := func(with, without string) string {
		if broker {
			return with
		}
		return without
	}
	layerWithBroker := func(with, without flow.Layer) flow.Layer {
		if broker {
			return with
		}
		return without
	}
	return []prepared{
		{
			Sample: Sample{"payments", "order_paid", "SO202501150001", "completed", flow.LayerNone, flow.T(
				"An ordinary payment: it ran once, its marker turns duplicates away, and its lock was given back.",
				"一笔普通支付：执行了一次，标记会挡住重复，锁已释放。")},
			records: once(3*time.Hour, time.Second), marker: markerSet(3 * time.Hour),
		},
		{
			Sample: Sample{"points", "points_grant", "PG-SLOW-0042", "completed", flow.LayerNone, flow.T(
				"Completed, but the run took 12 s and the lock lives 2 s: for 10 s nothing but the unique key kept a second run away.",
				"已完成，但执行耗时 12 秒而锁只有 2 秒：其中 10 秒只有唯一键在防止第二次执行。")},
			records: []oldRecord{{status: "completed", age: 170 * time.Minute, silent: 170*time.Minute - 12*time.Second}},
		},
		{
			Sample: Sample{"signs", "sign", "10086:2025-01-15", "completed", flow.LayerNone, flow.T(
				"A sign-in: the table has no status, the row itself says that it is done. Its id is made of two columns.",
				"一次签到：表中没有状态列，行存在即表示完成。它的 ID 由两列组成。")},
			records: once(160*time.Minute, 0), marker: markerSet(160 * time.Minute),
		},
		{
			Sample: Sample{"payments", "order_paid", "9007199254740993123", "completed", flow.LayerNone, flow.T(
				"A 19-digit id: whoever turns it into a floating-point number looks for another order.",
				"19 位数字的 ID：一旦被转成浮点数，查的就是另一笔订单。")},
			records: once(150*time.Minute, 0), marker: markerSet(150 * time.Minute),
		},
		{
			Sample: Sample{"payments", "order_paid", "SO-🎁-礼包-O'Brien \"gift\"", "completed", flow.LayerNone, flow.T(
				"An id with an emoji, Chinese characters and quotes.", "ID 中含有表情符号、中文和引号。")},
			records: once(145*time.Minute, time.Second), marker: markerSet(145 * time.Minute),
		},
		{
			Sample: Sample{"payments", "order_paid", "SO202501150007 ", "completed", flow.LayerNone, flow.T(
				"An id that ends with a blank. MySQL takes it for the id without the blank, Redis does not.",
				"ID 末尾有一个空格。MySQL 把它当作不带空格的 ID，Redis 则不会。")},
			records: once(140*time.Minute, time.Second), marker: markerSet(140 * time.Minute),
		},
		{
			Sample: Sample{"payments", "refund", "<script>alert('RF7')</script>", "completed", flow.LayerNone, flow.T(
				"An id that is a script: every page must show it and none may run it.",
				"ID 本身是一段脚本：页面必须原样显示，绝不能执行。")},
			records: once(135*time.Minute, 2*time.Second), marker: markerSet(135 * time.Minute),
		},
		{
			Sample: Sample{"payments", "order_paid", "SO202501150099", "stuck", flow.LayerMySQL, flow.T(
				"The consumer died in the middle, two hours ago. Its lock has expired, the record still says processing, and the unique key refuses every retry.",
				"消费者两小时前在执行中崩溃。锁已过期，记录仍为处理中，唯一键会拒绝每次重试。")},
			records: []oldRecord{{status: statusProcessing, age: 2 * time.Hour, silent: 2 * time.Hour}},
		},
		{
			Sample: Sample{"payments", "order_paid", "so-2025-ab-0007", "key_ambiguous", flow.LayerMySQL, flow.T(
				"Two spellings of one id: the record says SO-2025-AB-0007. MySQL takes them for equal, so this message would be skipped; Redis keeps them apart.",
				"同一 ID 的两种写法：记录中是 SO-2025-AB-0007。MySQL 认为二者相等，这条消息会被跳过；Redis 则视为不同。")},
			records: []oldRecord{{bizID: "SO-2025-AB-0007", status: statusCompleted, age: 110 * time.Minute, silent: 110*time.Minute - time.Second}},
		},
		{
			Sample: Sample{"payments", "order_paid", longID, "key_ambiguous", flow.LayerMySQL, flow.T(
				"The id is longer than the column. It was written without strict mode, so MySQL cut it, and every id with the same first %d characters now looks like this one.",
				"ID 比列更长。写入时未启用严格模式，被 MySQL 截断，前 %d 个字符相同的 ID 现在都像是它。", recordWidth)},
			records: []oldRecord{{bizID: longID, status: statusCompleted, age: 100 * time.Minute, silent: 100*time.Minute - time.Second}},
		},
		{
			Sample: Sample{"legacy", "coupon_grant", "CP-2025-0815", "ran_twice", flow.LayerMySQL, flow.T(
				"The unique key was forgotten when this table was made. Two consumers wrote a record each, and the coupon was granted twice.",
				"建表时漏了唯一键。两个消费者各写了一条记录，优惠券发了两次。")},
			records: []oldRecord{
				{status: statusCompleted, age: 90 * time.Minute, silent: 90*time.Minute - 2*time.Second},
				{status: statusCompleted, age: 90*time.Minute - time.Second, silent: 90*time.Minute - 3*time.Second},
			},
		},
		{
			Sample: Sample{"payments", "refund", "RF202501150404", "stuck", flow.LayerRedis, flow.T(
				"The refund failed, but its marker was set before the work and never taken back: for a day every retry is dropped as a duplicate.",
				"退款失败了，但标记在执行前就已写入且未撤回：一天之内每次重试都会被当作重复丢弃。")},
			records: []oldRecord{{status: statusFailed, age: 80 * time.Minute, silent: 80*time.Minute - 3*time.Second}},
			marker:  markerSet(80 * time.Minute),
		},
		{
			Sample: Sample{"settlement", "settlement_day", "2025-01-14/shop-12", withBroker("lost_suspected", "failed_unplaced"), flow.LayerBroker, flow.T(
				"The settlement failed and its message was acked all the same: no queue holds it, so nothing will try again.",
				"结算失败，但消息仍被确认了：任何队列中都没有它，不会再有重试。")},
			records: []oldRecord{{status: statusFailed, age: 70 * time.Minute, silent: 70*time.Minute - 5*time.Second}},
		},
		{
			Sample: Sample{"payments", "order_paid", "SO202501150500", "failed_unplaced", flow.LayerBroker, flow.T(
				"The payment failed five times. Its message lies among the dead letters, but totals do not tell which of them it is.",
				"支付失败了五次。它的消息在死信队列里，但仅凭总数无法得知是哪一条。")},
			records: []oldRecord{{status: statusFailed, age: 60 * time.Minute, silent: 60*time.Minute - 20*time.Second}}, dead: true,
		},
		{
			Sample: Sample{"payments", "order_paid", "SO202501159999", "clock_skew", flow.LayerMySQL, flow.T(
				"The host that wrote this record has a clock that runs years ahead.",
				"写入该记录的主机时钟快了好几年。")},
			records: []oldRecord{{status: statusProcessing, age: 50 * time.Minute, silent: -5 * 365 * 24 * time.Hour}},
		},
		{
			Sample: Sample{"payments", "refund", "RF202501150009", "unreadable", flow.LayerMySQL, flow.T(
				"The status is 9, which nobody has declared.", "状态是 9，没有人声明过它的含义。")},
			records: []oldRecord{{status: "9", age: 40 * time.Minute, silent: 40 * time.Minute}},
		},
		{
			Sample: Sample{"settlement", "settlement_day", "2025-01-15/shop-07", "stuck", flow.LayerRedis, flow.T(
				"The lock was taken with one command and its TTL was to be set with a second one; the consumer died in between. It never expires.",
				"锁用一条命令获取，TTL 本应由第二条命令设置，消费者在两者之间崩溃。该锁永不过期。")},
			lock: &oldKey{value: "host-3:18211", endless: true},
		},
		{
			Sample: Sample{"settlement", "settlement_day", "2025-01-15/shop-31", withBroker("lost_suspected", "stuck"), flow.LayerRedis, flow.T(
				"The marker says done, but the transaction with the record was rolled back, and the message is gone.",
				"标记表示已完成，但包含记录的事务已回滚，消息也没有了。")},
			marker: markerSet(30 * time.Minute),
		},
		{
			Sample: Sample{"imports", "stock_import", "IMP-20250115-03", withBroker("maybe_waiting", "never_seen"), layerWithBroker(flow.LayerBroker, flow.LayerNone), flow.T(
				"Nobody consumes the queue of the imports, and this one is among those that wait.",
				"没有消费者在消费导入队列，它就在等待的消息之中。")},
			waiting: true,
		},
		{
			Sample: Sample{"settlement", "settlement_day", "2025-01-16/shop-07", "never_seen", flow.LayerNone, flow.T(
				"No layer knows this settlement.", "没有任何一层知道这笔结算。")},
		},
	}
}

// runningSample is worked on for as long as the lab lives.
func runningSample() Sample {
	return Sample{"reports", "monthly_report", "REPORT-2025-01", "running", flow.LayerNone, flow.T(
		"A long report: its consumer still works and extends its lock, so neither the lock's TTL nor the age of the record is a sign of death.",
		"一份耗时很长的报表：消费者仍在工作并不断续期锁，因此锁的 TTL 和记录的年龄都不代表它已死。")}
}

// once is the record of one completed run.
func once(age, took time.Duration) []oldRecord {
	return []oldRecord{{status: statusCompleted, age: age, silent: age - took}}
}

func markerSet(age time.Duration) *oldKey { return &oldKey{value: "success", age: age} }
