package main

// The vocabulary, and the layers that stand on it. An arrow may skip layers, never point up or sideways.
var (
	words  = []string{"internal/flow", "internal/history"}
	stores = with(words, "internal/ledger", "internal/lockstore", "internal/broker")
	judges = with(stores, "internal/dossier", "internal/verdict", "internal/timeline")
	answer = with(judges, "internal/answer")
	// What follows a RabbitMQ over a connection of its own.
	onRabbit = with(words, "internal/broker", "internal/broker/rabbitmq", "internal/broker/rabbitmq/link")
)

// rooms lists what each package may import of this module. A name that ends in /* stands for the packages below it
// that have no entry of their own. A package that is not listed is an error: whoever adds one decides here where it
// stands.
var rooms = map[string][]string{
	"internal/flow":                   nil,
	"internal/history":                {"internal/flow"},
	"internal/config":                 words,
	"internal/ledger":                 words,
	"internal/lockstore":              words,
	"internal/broker":                 words,
	"internal/broker/rabbitmq":        with(words, "internal/broker"),
	"internal/broker/rabbitmq/link":   words,
	"internal/broker/rabbitmq/tap":    onRabbit,
	"internal/broker/rabbitmq/trace":  onRabbit,
	"internal/broker/rabbitmq/replay": onRabbit,
	"internal/dossier":                stores,
	"internal/verdict":                with(stores, "internal/dossier"), // the evidence that it judges
	"internal/timeline":               with(stores, "internal/dossier"),
	"internal/answer":                 judges,
	"internal/doctor":                 stores,
	"internal/draft":                  with(stores, "internal/broker/rabbitmq"),
	"internal/archive":                nil,
	"internal/audit":                  words,
	"internal/access":                 with(words, "internal/audit"),
	"internal/action":                 with(answer, "internal/access", "internal/audit"),
	"internal/mask":                   with(words, "internal/access"),
	"web":                             nil,
	"exporter":                        with(answer, "internal/doctor"),
	"console":                         with(answer, "internal/access", "internal/action", "internal/audit", "internal/doctor", "internal/mask", "web"),
	"janitor":                         with(stores, "internal/archive"),
	"internal/lab/servers":            nil,
	"internal/lab":                    with(answer, "internal/lab/servers"),
	"internal/app": with(answer, "internal/archive", "internal/access", "internal/action", "internal/audit", "internal/mask", "internal/doctor", "internal/draft", "internal/config", "internal/broker/rabbitmq",
		"internal/broker/rabbitmq/link", "internal/broker/rabbitmq/replay", "internal/broker/rabbitmq/tap", "internal/broker/rabbitmq/trace", "internal/lab/servers", "internal/lab", "exporter", "console", "janitor"),
	"cmd/idemscope": with(words, "internal/app"),

	"internal/testkit":    {"internal/lab/servers"},
	"internal/testkit/*":  {"internal/testkit", "internal/lab/servers"},
	"scripts/walls":       nil,
	"bench/figure":        nil,
	"bench/*":             with(answer, "internal/archive", "bench/figure", "exporter", "console", "janitor", "internal/broker/rabbitmq", "internal/lab/servers"),
	"scripts/mutate":      nil,
	"scripts/screenshots": with(words, "internal/app"),
	"internal/scenarios":  nil, // tests alone, and tests may import what they like
}

// guard gives packages from elsewhere to a few rooms alone.
type guard struct {
	imports []string // import paths, each with the packages below it
	rooms   []string // as in the table of rooms
	why     string
}

var guards = []guard{
	{
		imports: []string{"database/sql", "github.com/jmoiron/sqlx", "github.com/go-sql-driver/mysql"},
		rooms:   []string{"internal/ledger", "internal/lab", "internal/lab/servers", "internal/testkit", "bench/*"},
		why:     "internal/ledger alone talks to MySQL",
	},
	{
		imports: []string{"github.com/redis/go-redis"},
		rooms:   []string{"internal/lockstore", "internal/lab", "internal/lab/servers", "internal/testkit", "bench/*"},
		why:     "internal/lockstore alone talks to Redis",
	},
	{
		imports: []string{"github.com/rabbitmq/amqp091-go", "github.com/Azure/go-amqp"},
		rooms:   []string{"internal/broker/rabbitmq/link", "internal/broker/rabbitmq/replay", "internal/broker/rabbitmq/tap", "internal/broker/rabbitmq/trace", "internal/lab", "internal/testkit"},
		why:     "internal/broker/rabbitmq alone talks to RabbitMQ",
	},
}

// envFuncs are the functions of package os that read the environment, and envRooms the packages that may call them.
var (
	envFuncs = []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}
	envRooms = []string{"internal/config", "internal/lab/servers", "internal/testkit", "internal/testkit/*", "cmd/idemscope"}
)

// with returns a new list.
func with(list []string, more ...string) []string {
	return append(append([]string(nil), list...), more...)
}
