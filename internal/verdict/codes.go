package verdict

// Codes lists every verdict, in the order of the table of rules.
func Codes() []Code {
	return []Code{KeyAmbiguous, RanTwice, Unknown, ClockSkew, Unreadable, MayHaveRunTwice, Stuck, DeadLettered, LostSuspected,
		FailedUnplaced, RetryScheduled, Running, Completed, Acquiring, Waiting, MaybeWaiting, Archived, NeverSeen}
}
