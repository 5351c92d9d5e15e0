package ledger

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// table is one table of a ledger: the only one, or one of its shards.
type table struct {
	database, name string
}

func (t table) String() string { return t.database + "." + t.name }

func (t table) quoted() string { return quote(t.database) + "." + quote(t.name) }

const (
	// maxShards bounds what one pattern may stand for.
	maxShards = 1024
	// maxName is the server's limit for a name, in characters.
	maxName = 64
)

var shardRange = regexp.MustCompile(`\{(\d+)\.\.(\d+)\}`)

// parseTables reads "table", "database.table", and ranges in either part:
// "idempotent_record_{00..63}". Both ends of a range have as many digits as the
// names have, or none is padded.
func parseTables(pattern, database string) ([]table, error) {
	names, err := expand(pattern)
	if err != nil {
		return nil, err
	}
	var tables []table
	for _, name := range names {
		t := table{database: database, name: name}
		if head, tail, dotted := strings.Cut(name, "."); dotted {
			t = table{database: head, name: tail}
		}
		for _, part := range []string{t.database, t.name} {
			if part == "" || len([]rune(part)) > maxName || strings.ContainsAny(part, ".{}/\\\x00") {
				return nil, fmt.Errorf("table: %q is no table name; it looks like orders, shop.orders or orders_{00..63}", pattern)
			}
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// expand resolves the first range and then what is left.
func expand(pattern string) ([]string, error) {
	at := shardRange.FindStringSubmatchIndex(pattern)
	if at == nil {
		return []string{pattern}, nil
	}
	low, high := pattern[at[2]:at[3]], pattern[at[4]:at[5]]
	first, err1 := strconv.Atoi(low)
	last, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil || first > last || last-first >= maxShards {
		return nil, fmt.Errorf("table: range {%s..%s} must rise and stand for at most %d tables", low, high, maxShards)
	}
	width := 0
	if strings.HasPrefix(low, "0") {
		width = len(low)
	}
	rest, err := expand(pattern[at[1]:])
	if err != nil {
		return nil, err
	}
	if (last-first+1)*len(rest) > maxShards {
		return nil, fmt.Errorf("table: %q stands for more than %d tables", pattern, maxShards)
	}
	var names []string
	for n := first; n <= last; n++ {
		for _, tail := range rest {
			names = append(names, fmt.Sprintf("%s%0*d%s", pattern[:at[0]], width, n, tail))
		}
	}
	return names, nil
}
