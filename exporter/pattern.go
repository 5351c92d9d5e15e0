package exporter

// patternRows is from how many rows the step of their ids is told.
const patternRows = 64

// pattern finds the step of ids where nobody can be asked for it: the greatest
// common divisor of the distances between rows, over the last hundred or so.
// It cannot be told from inserts that are refused after each one that succeeds.
type pattern struct {
	last uint64
	// divisor is that of the rows distances since before was set; before is
	// that of the patternRows before them, 0 when there were not as many yet.
	divisor, before uint64
	rows            int
}

// add takes the id of the next row. One that is not above the last begins anew.
func (p *pattern) add(id uint64) {
	if p.last > 0 && id > p.last {
		p.divisor = divisor(p.divisor, id-p.last)
		p.rows++
	} else if p.last > 0 {
		*p = pattern{}
	}
	p.last = id
	if p.rows == patternRows {
		p.before, p.divisor, p.rows = p.divisor, 0, 0
	}
}

// step is 1 as long as it is not known.
func (p *pattern) step() uint64 {
	if p.before == 0 {
		return 1
	}
	return divisor(p.before, p.divisor)
}

// divisor is the greatest common one; any number divides 0.
func divisor(a, b uint64) uint64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
