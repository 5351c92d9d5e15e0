package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Fingerprint is a hash of what the table is like at this moment: its columns in
// their order, its keys and its engine; not of its name, so that shards have the
// same. It is 32 hexadecimal digits. The types are as the server spells them, so
// that another family or release may give another one. Explain words its errors.
func (t *SweepTable) Fingerprint(ctx context.Context) (string, error) {
	sch, err := t.shard.server.readSchema(ctx, t.shard.table)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(sch.spelled()))
	return hex.EncodeToString(sum[:16]), nil
}

// spelled writes the schema out, one thing a line. Names are quoted: they may
// hold anything.
func (s *schema) spelled() string {
	var b strings.Builder
	fmt.Fprintf(&b, "engine %q\n", s.engine)
	for _, c := range s.columns {
		fmt.Fprintf(&b, "column %q %q %q %q null=%t auto=%t\n", c.name, strings.ToLower(c.whole), c.charset, c.collation, c.nullable, c.autoIncrement)
	}
	for _, x := range s.indexes {
		fmt.Fprintf(&b, "key %q unique=%t", x.name, x.unique)
		for _, p := range x.parts {
			fmt.Fprintf(&b, " %q prefix=%t", p.column, p.prefix)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
