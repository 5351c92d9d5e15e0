package lockstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"idemscope/internal/flow"
)

// Bounds of one reading.
const (
	// MaxTypes is how many biz_types are read. Further ones are cut, and it is said.
	MaxTypes = 1000
	// maxContractErrors bounds how many contract errors are kept.
	maxContractErrors = 100
	scanPage          = 500
	typesPerPipeline  = 100
)

// RunBounds are the upper bounds of the run time buckets, in milliseconds.
var RunBounds = [...]uint64{5, 10, 25, 50, 100, 250, 500, 1000, 2000, 3000, 4000, 5000, 7500,
	10000, 15000, 20000, 30000, 60000, 120000, 300000}

// Counters is what instrumented consumers have counted, version 1 of the contract.
type Counters struct {
	// Types are sorted by biz_type.
	Types []TypeCounters
	// Cut: there are more than MaxTypes biz_types; the others were not read.
	Cut bool
	// ContractErrors name values that break the contract, by key and field.
	// Such a value is skipped; the rest is good.
	ContractErrors []string
	// ReadAt is when the last answer arrived, by this process's clock.
	ReadAt time.Time
}

// TypeCounters are the counts of one biz_type. A field that no consumer has
// written is 0.
type TypeCounters struct {
	BizType string
	// Attempt counts deliveries that entered the guard.
	Attempt uint64
	// The five ends of a delivery, of which each has one.
	LockConflict, DedupStatus, DedupRecord, Completed, Failed uint64
	// Acquired, Retry, LockLost and Degraded are counted where they apply.
	Acquired, Retry, LockLost, Degraded uint64
	// Buckets[i] counts the completed and failed runs for which RunBounds[i] is
	// the first bound that fits; the last one counts those beyond every bound.
	// They do not add up from one to the next.
	Buckets [len(RunBounds) + 1]uint64
	// MsSum is the run time of all of them together, in milliseconds.
	MsSum uint64
}

// field is one field of a type's hash and where its count goes.
type field struct {
	name string
	to   *uint64
}

func (c *TypeCounters) fields() []field {
	fields := []field{
		{"attempt", &c.Attempt},
		{"lock_conflict", &c.LockConflict},
		{"dedup_status", &c.DedupStatus},
		{"dedup_record", &c.DedupRecord},
		{"completed", &c.Completed},
		{"failed", &c.Failed},
		{"acquired", &c.Acquired},
		{"retry", &c.Retry},
		{"lock_lost", &c.LockLost},
		{"degraded", &c.Degraded},
		{"ms_sum", &c.MsSum},
		{"ms_le_inf", &c.Buckets[len(RunBounds)]},
	}
	for i, bound := range RunBounds {
		fields = append(fields, field{"ms_le_" + strconv.FormatUint(bound, 10), &c.Buckets[i]})
	}
	return fields
}

// Counters reads the counters whose keys start with prefix (mostly empty): the
// set of biz_types, then one hash each, of which only the fields of the
// contract are asked for. No counters at all are no error. The
// error is an *Error: the server could not be asked, so nothing is known.
func (s *Store) Counters(ctx context.Context, prefix string) (Counters, error) {
	var c Counters
	types, err := s.bizTypes(ctx, prefix, &c)
	if err != nil {
		return Counters{}, err
	}
	for chunk := range slices.Chunk(types, typesPerPipeline) {
		if err := s.typeCounters(ctx, prefix, chunk, &c); err != nil {
			return Counters{}, err
		}
	}
	c.ReadAt = time.Now()
	return c, nil
}

// bizTypes lists the members of the set of types, at most MaxTypes. SSCAN may
// name one twice.
func (s *Store) bizTypes(ctx context.Context, prefix string, c *Counters) ([]string, error) {
	key := prefix + "idem_stat:types"
	var types []string
	var cursor uint64
	for {
		var page *redis.ScanCmd
		cmds, took := s.send(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
			page = pipe.SScan(ctx, key, cursor, "", scanPage)
		})
		if wrongType(page) {
			c.contractError("%s is not a set", key)
			return nil, nil
		}
		if failure := s.failure(cmds, took); failure != nil {
			return nil, failure
		}
		var members []string
		members, cursor = page.Val()
		types = append(types, members...)
		slices.Sort(types)
		types = slices.Compact(types)
		if len(types) > MaxTypes {
			c.Cut = true
			return types[:MaxTypes], nil
		}
		if cursor == 0 {
			return types, nil
		}
	}
}

func (s *Store) typeCounters(ctx context.Context, prefix string, types []string, c *Counters) error {
	hashes := make([]*redis.SliceCmd, len(types))
	cmds, took := s.send(ctx, func(ctx context.Context, pipe redis.Pipeliner) {
		for i, bizType := range types {
			hashes[i] = pipe.HMGet(ctx, hashKey(prefix, bizType), fieldNames()...)
		}
	})
	failed := slices.DeleteFunc(slices.Clone(cmds), wrongType)
	if failure := s.failure(failed, took); failure != nil {
		return failure
	}
	for i, bizType := range types {
		if wrongType(hashes[i]) {
			c.contractError("%s is not a hash", hashKey(prefix, bizType))
			continue
		}
		c.add(prefix, bizType, hashes[i].Val())
	}
	return nil
}

// add takes the values of one hash, in the order of the fields.
func (c *Counters) add(prefix, bizType string, values []any) {
	counts := TypeCounters{BizType: bizType}
	for i, f := range counts.fields() {
		text, written := values[i].(string)
		if !written {
			continue
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			c.contractError("%s: field %s is not a count", hashKey(prefix, bizType), f.name)
			continue
		}
		*f.to = n
	}
	c.Types = append(c.Types, counts)
}

// contractError notes a fault by its key, never by its value: nobody knows what
// a consumer put there.
func (c *Counters) contractError(format, key string, args ...any) {
	message := fmt.Sprintf(format, append([]any{flow.Visible(key)}, args...)...)
	switch {
	case len(c.ContractErrors) < maxContractErrors:
		c.ContractErrors = append(c.ContractErrors, message)
	case len(c.ContractErrors) == maxContractErrors:
		c.ContractErrors = append(c.ContractErrors, "more of the kind")
	}
}

// hashKey has the braces as a part of the key: a Cluster hash tag.
func hashKey(prefix, bizType string) string { return prefix + "idem_stat:{" + bizType + "}" }

func fieldNames() []string {
	var names []string
	for _, f := range new(TypeCounters).fields() {
		names = append(names, f.name)
	}
	return names
}
