package verdict

import (
	"strings"
	"testing"
	"time"

	"idemscope/internal/flow"
)

// TestGates: how far the message of each verdict came. One letter per gate, in the
// order broker, Redis, MySQL: p passed, b blocked, u unknown, n not reached.
func TestGates(t *testing.T) {
	letters := map[Passage]string{Passed: "p", Blocked: "b", Unclear: "u", NotReached: "n"}
	covered := map[Code]bool{}
	for name, c := range map[string]struct {
		code  Code
		want  string
		scene []scene
	}{
		"another id's row":          {KeyAmbiguous, "nnb", scenes(row(flow.Completed, old), rowLike(near))},
		"longer than the column":    {KeyAmbiguous, "nnb", scenes(tooLong)},
		"two completed rows":        {RanTwice, "ppp", scenes(row(flow.Completed, old), row(flow.Completed, old))},
		"record not read":           {Unknown, "uuu", scenes(recordError)},
		"record not read, lock":     {Unknown, "ppu", scenes(recordError, lock(9*time.Second))},
		"record not read, marker":   {Unknown, "puu", scenes(recordError, marker(time.Hour))},
		"nothing was read":          {Unknown, "uuu", scenes(recordError, lockError, markerError, brokerError)},
		"lock not read, silent":     {Unknown, "ppp", scenes(row(flow.Processing, old), lockError)},
		"lock not read, no record":  {Unknown, "uun", scenes(lockError)},
		"lock of somebody":          {Unknown, "uun", scenes(lock(9*time.Second), lockShared)},
		"queues not read":           {Unknown, "unn", scenes(brokerError)},
		"in the future":             {ClockSkew, "ppp", scenes(row(flow.Processing, -8*time.Hour))},
		"unmapped status":           {Unreadable, "ppp", scenes(row(flow.Unmapped, old))},
		"lock taken anew":           {MayHaveRunTwice, "ppp", scenes(row(flow.Processing, fresh), lock(12*time.Second))},
		"silent":                    {Stuck, "ppb", scenes(row(flow.Processing, old))},
		"lock for ever, no record":  {Stuck, "pbn", scenes(lock(0))},
		"lock for ever, failed":     {Stuck, "pbp", scenes(row(flow.Failed, old), lock(0))},
		"failed behind a marker":    {Stuck, "pbp", scenes(row(flow.Failed, old), marker(time.Hour))},
		"marker alone, no queue":    {Stuck, "pbn", scenes(marker(time.Hour), noBroker)},
		"marker, nothing left":      {LostSuspected, "pbn", scenes(marker(time.Hour))},
		"failed, queues empty":      {LostSuspected, "bpp", scenes(row(flow.Failed, old))},
		"failed, messages wait":     {FailedUnplaced, "upp", scenes(row(flow.Failed, old), messages(2, 1, 1))},
		"fresh":                     {Running, "ppp", scenes(row(flow.Processing, fresh))},
		"row at the end of the run": {Running, "ppn", scenes(presence, lock(5*time.Second))},
		"completed":                 {Completed, "ppp", scenes(row(flow.Completed, old), marker(time.Hour))},
		"record alone":              {Completed, "ppp", scenes(row(flow.Completed, old), noBroker, noLock, noMarker)},
		"lock a moment ago":         {Acquiring, "ppn", scenes(lock(14 * time.Second))},
		"messages wait":             {MaybeWaiting, "unn", scenes(messages(4, 0, 0))},
		"nothing anywhere":          {NeverSeen, "nnn", nil},
		"nothing, no queue":         {NeverSeen, "unn", scenes(noBroker)},
		"not started":               {NeverSeen, "nnn", scenes(row(flow.NotStarted, old))},
		"archived":                  {Archived, "ppp", scenes(archive(archivedRow))},
		"waits, nothing else":       {Waiting, "nnn", scenes(messages(1, 0, 0), tap(ev(flow.Published, time.Minute)), trail())},
		"failed and given up":       {DeadLettered, "bpp", scenes(row(flow.Failed, old), messages(0, 0, 1), deadQueue, tap(ev(flow.Published, time.Hour), ev(flow.DeadLettered, 50*time.Minute)))},
		"given back":                {RetryScheduled, "ppp", scenes(row(flow.Failed, 29*time.Second), messages(0, 1, 0), trail(ev(flow.Received, 30*time.Second), ev(flow.GivenBack, 28*time.Second)))},
		"done, and no record":       {LostSuspected, "ppu", scenes(trail(ev(flow.RunBegan, time.Minute), ev(flow.RunDone, time.Minute)))},
	} {
		t.Run(name, func(t *testing.T) {
			d := dossierOf(c.scene...)
			v := Judge(d)
			covered[v.Code] = true
			if v.Code != c.code {
				t.Fatalf("verdict %s: %s", v.Code, v.Sentence.EN)
			}
			var got strings.Builder
			for _, g := range Gates(d, v) {
				got.WriteString(letters[g.Passage])
				if g.Expected.EN == "" || g.Expected.ZH == "" || g.Actual.EN == "" || g.Actual.ZH == "" {
					t.Errorf("%s lacks words: %+v", g.Layer, g)
				}
			}
			if got.String() != c.want {
				t.Errorf("%s, want %s: %+v", got.String(), c.want, Gates(d, v))
			}
		})
	}
	for _, code := range Codes() {
		if !covered[code] {
			t.Errorf("no case of %s", code)
		}
	}
}

func TestAGateSaysWhyAMessagePassedIt(t *testing.T) {
	done := row(flow.Completed, old)
	for name, c := range map[string]struct {
		layer int // 1 is Redis, 2 MySQL
		says  string
		scene []scene
	}{
		"neither lock nor marker":      {1, "no gate", scenes(done, noLock, noMarker)},
		"no lock, and a marker":        {1, "the marker drops duplicates", scenes(done, noLock, marker(time.Hour))},
		"no lock, the marker is gone":  {1, "it wrote the record", scenes(done, noLock)},
		"no marker, the lock is gone":  {1, "it wrote the record", scenes(done, noMarker)},
		"neither, and nothing came":    {1, "holds no key of it", scenes(noLock, noMarker)},
		"longer than the column":       {2, "cannot keep this id", scenes(tooLong)},
		"another id's row":             {2, "another id's record", scenes(done, rowLike(near))},
		"two rows, of this very id":    {2, "did not stop the second run", scenes(done, done)},
		"failed, with a marker beside": {1, "turns every delivery away", scenes(row(flow.Failed, old), marker(time.Hour))},
	} {
		d := dossierOf(c.scene...)
		if g := Gates(d, Judge(d))[c.layer]; !strings.Contains(g.Actual.EN, c.says) {
			t.Errorf("%s: %q, want %q", name, g.Actual.EN, c.says)
		}
	}
}
