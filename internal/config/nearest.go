package config

// nearest returns the candidate that word most likely misspells, if one is close.
func nearest(word string, candidates []string) (string, bool) {
	best, found := "", false
	// Up to one slip in three letters, but always one.
	limit := max(1, len([]rune(word))/3)
	for _, candidate := range candidates {
		if d := distance(word, candidate); d <= limit {
			best, found, limit = candidate, true, d-1
		}
	}
	return best, found
}

// distance counts the slips between two words: a letter too many, missing,
// wrong, or swapped with its neighbour (optimal string alignment).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	var before, last, row []int
	for j := range len(t) + 1 {
		row = append(row, j)
	}
	for i := range s {
		before, last, row = last, row, []int{i + 1}
		for j := range t {
			cost := 1
			if s[i] == t[j] {
				cost = 0
			}
			best := min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && s[i] == t[j-1] && s[i-1] == t[j] {
				best = min(best, before[j-1]+1)
			}
			row = append(row, best)
		}
	}
	return row[len(t)]
}
