package doctor

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"idemscope/internal/flow"
	"idemscope/internal/lockstore"
)

var redisRules = []rule[redisFacts]{
	{Check{
		Code: "redis_evicts", Severity: Critical,
		Title:  flow.T("Redis may evict locks", "Redis 可能淘汰锁"),
		Why:    flow.T("When memory runs out it throws keys away, those with a TTL first: locks and markers. A second consumer then starts the same work.", "内存不足时 Redis 会淘汰键，带 TTL 的锁和标记首当其冲；第二个消费者随即开始同样的业务。"),
		Manual: "https://redis.io/docs/latest/develop/reference/eviction/",
	}, info(judgePolicy)},
	{Check{
		Code: "redis_evicted", Severity: Warning,
		Title:  flow.T("Redis has evicted keys", "Redis 淘汰过键"),
		Why:    flow.T("Locks and markers may have been among them: what happened in that time is not proven by an absent key.", "其中可能有锁和标记：那段时间里键不存在并不能证明什么。"),
		Manual: "https://redis.io/docs/latest/develop/reference/eviction/",
	}, info(judgeEvicted)},
	{Check{
		Code: "redis_not_persistent", Severity: Warning,
		Title:  flow.T("Redis keeps nothing on disk", "Redis 没有持久化"),
		Why:    flow.T("After a restart all locks and markers are gone: what ran is run again wherever the record does not stop it.", "重启后所有锁和标记都会丢失：凡是记录拦不住的，都会再次执行。"),
		Manual: "https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/",
	}, judgePersistence},
	{Check{
		Code: "redis_no_replica", Severity: Info,
		Title:  flow.T("Redis has no replica", "Redis 没有副本"),
		Why:    flow.T("If its machine fails, consumers run without locks, guarded by the record alone, until it is back.", "机器故障时，在恢复之前消费者只能在没有锁的情况下运行，仅靠记录防护。"),
		Manual: "https://redis.io/docs/latest/operate/oss_and_stack/management/replication/",
	}, info(judgeReplicas)},
	{Check{
		Code: "redis_is_replica", Severity: Critical,
		Title:  flow.T("A Redis replica is read", "读取的是 Redis 副本"),
		Why:    flow.T("A lock that was just taken may be missing there, and one that was released may still show.", "刚获取的锁可能还不存在，已释放的锁可能仍然显示。"),
		Manual: "https://redis.io/docs/latest/operate/oss_and_stack/management/replication/",
	}, info(judgeRole)},
	{Check{
		Code: "redis_open", Severity: Warning,
		Title:  flow.T("Redis lets everybody in", "Redis 任何人都能访问"),
		Why:    flow.T("Whoever reaches it over the network can delete locks and markers.", "任何能通过网络访问它的人都可以删除锁和标记。"),
		Manual: "https://redis.io/docs/latest/operate/oss_and_stack/management/security/",
	}, judgeOpen},
	{Check{
		Code: "redis_rights_wide", Severity: Warning,
		Title:  flow.T("The reading user may run every command", "只读用户可执行所有命令"),
		Why:    flow.T("idemscope reads with a few commands. Whoever gets hold of this password can delete locks, or everything.", "idemscope 只需要少数读命令。任何拿到该密码的人都能删除锁，甚至全部数据。"),
		Manual: "https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/",
	}, judgeRedisRights},
	{Check{
		Code: "redis_act_wide", Severity: Warning,
		Title:  flow.T("The acting user may run every command", "执行操作的用户可执行所有命令"),
		Why:    flow.T("Actions delete a lock or a marker with one script. Whoever gets hold of this password can delete everything.", "操作只用一个脚本删除锁或标记。任何拿到该密码的人都能删除全部数据。"),
		Manual: "https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/",
	}, judgeRedisAct},
	{Check{
		Code: "redis_empty_db", Severity: Warning,
		Title:  flow.T("The configured database is empty", "配置的数据库是空的"),
		Why:    flow.T("Locks and markers are probably kept in another database: every look-up says that they are absent.", "锁和标记很可能在另一个数据库中：每次查询都会显示不存在。"),
		Manual: "https://redis.io/docs/latest/commands/select/",
	}, info(judgeDB)},
	{Check{
		Code: "redis_clock", Severity: Warning,
		Title:  flow.T("Redis's clock and ours differ", "Redis 的时钟与本机不一致"),
		Why:    flow.T("Since when a lock is held, and what came first in Redis and in MySQL, cannot be told.", "无法得知锁从何时开始持有，也无法比较 Redis 与 MySQL 中事件的先后。"),
		Manual: "https://redis.io/docs/latest/commands/time/",
	}, judgeRedisClock},
}

// info judges by what INFO tells.
func info(judge func(redisFacts, lockstore.Info) []outcome) func(redisFacts) []outcome {
	return func(f redisFacts) []outcome {
		return given(f.survey, func(s lockstore.ServerSurvey) []outcome {
			if !s.InfoWhy.Empty() {
				return unsure(s.InfoWhy)
			}
			return judge(f, s.Info)
		})
	}
}

// A policy of another word may throw away keys; a proxy that names none is not asked further.
func judgePolicy(_ redisFacts, i lockstore.Info) []outcome {
	if i.Policy == "" {
		return unsure(flow.T("INFO does not tell maxmemory_policy", "INFO 没有给出 maxmemory_policy"))
	}
	return when(i.Policy != "noeviction" && i.MaxMemory > 0,
		flow.T("maxmemory-policy is %s, with a limit of %s", "maxmemory-policy 为 %s，内存上限 %s", flow.Visible(i.Policy), size(i.MaxMemory)),
		flow.T("Keep locks in a Redis of their own that never evicts, and give it enough memory.", "把锁放在单独的、从不淘汰的 Redis 中，并留足内存。"),
		"redis-cli CONFIG SET maxmemory-policy noeviction")
}

func size(n uint64) string {
	const mega = 1 << 20
	if n >= mega {
		return fmt.Sprintf("%d MB", n/mega)
	}
	return fmt.Sprintf("%d B", n)
}

func judgeEvicted(_ redisFacts, i lockstore.Info) []outcome {
	return when(i.Evicted > 0,
		flow.T("%d keys since it started (evicted_keys)", "启动以来共 %d 个键（evicted_keys）", i.Evicted),
		flow.T("Give it more memory, or move what is only cached elsewhere.", "增加内存，或把缓存数据移到别处。"), "")
}

func judgePersistence(f redisFacts) []outcome {
	return given(f.survey, func(s lockstore.ServerSurvey) []outcome {
		switch {
		case s.InfoWhy.Empty() && s.Info.AppendOnly:
			return fine()
		case !s.InfoWhy.Empty():
			return unsure(s.InfoWhy)
		case !s.ConfigWhy.Empty():
			return unsure(s.ConfigWhy)
		}
		return when(s.Config.Save == "",
			flow.T("no append-only file and no snapshots (appendonly no, save \"\")", "未启用 AOF 和快照（appendonly no，save \"\"）"),
			flow.T("Turn the append-only file on, and write it to the configuration file as well.", "启用 AOF，并同时写入配置文件。"),
			"redis-cli CONFIG SET appendonly yes")
	})
}

func judgeReplicas(_ redisFacts, i lockstore.Info) []outcome {
	if i.Role != "master" {
		return skip()
	}
	return when(i.Replicas == 0, flow.T("connected_slaves is 0", "connected_slaves 为 0"),
		flow.T("Add a replica and Sentinel, unless running on the record alone is good enough for a while.", "添加副本和 Sentinel；除非可以接受暂时只靠记录防护。"), "")
}

func judgeRole(_ redisFacts, i lockstore.Info) []outcome {
	return when(i.Role == "slave", flow.T("the role of the server is slave", "服务器角色为 slave"),
		flow.T("Configure the master, or the sentinels that know it.", "请配置主节点，或知道主节点的哨兵。"), "")
}

func judgeOpen(f redisFacts) []outcome {
	fix := flow.T("Set a password (ACL) and let it listen on the addresses that consumers use only.", "设置密码（ACL），并只监听消费者使用的地址。")
	return given(f.survey, func(s lockstore.ServerSurvey) []outcome {
		switch {
		case f.password:
			return fine()
		case f.remote:
			return bad(flow.T("it answered over the network without a password", "通过网络无需密码即可访问"), fix, "redis-cli ACL SETUSER default '>...'")
		case !s.ConfigWhy.Empty():
			return unsure(s.ConfigWhy)
		}
		return when(!s.Config.Protected && listensBeyond(s.Config.Bind),
			flow.T("no password, protected-mode is off, and it listens on %s", "没有密码，protected-mode 已关闭，且监听 %s", bindWord(s.Config.Bind)),
			fix, "redis-cli ACL SETUSER default '>...'")
	})
}

// listensBeyond reports whether other machines can reach one of the addresses.
func listensBeyond(bind string) bool {
	addresses := strings.Fields(bind)
	return len(addresses) == 0 || slices.ContainsFunc(addresses, func(a string) bool {
		ip := net.ParseIP(strings.TrimPrefix(a, "-"))
		return ip == nil || !ip.IsLoopback()
	})
}

func bindWord(bind string) flow.Text {
	if bind == "" {
		return flow.T("all addresses", "所有地址")
	}
	return flow.Text{EN: flow.Visible(bind), ZH: flow.Visible(bind)}
}

// reading are the rules of a user that idemscope needs, and nothing else.
const reading = "-@all +ping +info +time +type +strlen +getrange +pttl +scan +sscan +hmget +select +acl|whoami"

func judgeRedisRights(f redisFacts) []outcome {
	return given(f.survey, func(s lockstore.ServerSurvey) []outcome {
		if !s.RightsWhy.Empty() {
			return unsure(s.RightsWhy)
		}
		return when(s.Rights.Writes(),
			flow.T("the user %s has no limits", "用户 %s 没有任何限制", flow.Visible(s.Rights.User)),
			flow.T("Make a user that can read only, and configure it under redis.%s.", "请创建一个只读用户，并配置到 redis.%s。", f.name),
			"redis-cli ACL SETUSER idemscope on '>...' '%R~*' "+reading)
	})
}

// releasing are the rules of a user that may release locks and clear markers.
const releasing = "-@all +ping +select +eval +evalsha +type +pttl +get +del"

func judgeRedisAct(f redisFacts) []outcome {
	if f.act == nil {
		return skip()
	}
	return given(*f.act, func(r lockstore.Rights) []outcome {
		return when(r.Writes(), flow.T("the user %s has no limits", "用户 %s 没有任何限制", flow.Visible(r.User)),
			flow.T("Make a user for the keys of locks and markers only, and configure it under redis.%s.act.", "请创建只能访问锁和标记的用户，并配置到 redis.%s.act。", f.name),
			"redis-cli ACL SETUSER idemscope_act on '>...' '~LOCKS*' '~MARKERS*' "+releasing)
	})
}

func judgeDB(f redisFacts, i lockstore.Info) []outcome {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(i.Keys)), func(db int) bool { return db == f.db })
	if len(i.Keys) == 0 {
		return skip() // an empty server says nothing
	}
	if !f.lasting && i.Keys[f.db] == 0 {
		return skip() // locks alone come and go
	}
	return when(i.Keys[f.db] == 0,
		flow.T("db %d has no key, while others have: %s", "db %d 没有键，而其他库有：%s", f.db, dbList(others, i.Keys)),
		flow.T("Set db under redis.%s to the number that the consumers use.", "请把 redis.%s 的 db 设为消费者使用的编号。", f.name), "redis-cli INFO keyspace")
}

func dbList(dbs []int, keys map[int]uint64) string {
	var words []string
	for _, db := range dbs {
		words = append(words, fmt.Sprintf("db%d: %d", db, keys[db]))
	}
	return visible(words)
}

func judgeRedisClock(f redisFacts) []outcome {
	return given(f.survey, func(s lockstore.ServerSurvey) []outcome {
		if !s.ClockWhy.Empty() {
			return unsure(s.ClockWhy)
		}
		return when(apart(s.ClockAhead, s.ClockMargin), clockSeen(s.ClockAhead, s.ClockMargin), clockFix, "chronyc tracking")
	})
}
