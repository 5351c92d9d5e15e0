package lockstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Refused reports that the server answers, but does not run the command for this
// user, or does not know it.
func (e *Error) Refused() bool {
	var answered redis.Error
	return errors.As(e.cause, &answered) &&
		(redis.IsPermissionError(e.cause) || strings.HasPrefix(answered.Error(), "ERR unknown"))
}

// Evictions tells how many keys each server of the store has evicted for want of
// memory since it started, from INFO. The servers of a cluster are named
// host:port, the one of other modes is the empty name. The error is an *Error.
func (s *Store) Evictions(ctx context.Context) (map[string]uint64, error) {
	servers, err := s.primaries(ctx)
	if err != nil {
		return nil, err
	}
	evicted := map[string]uint64{}
	for _, at := range servers {
		info, err := s.info(ctx, at.client, "stats")
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseUint(infoField(info, "evicted_keys"), 10, 64)
		if err != nil {
			return nil, s.broken(fmt.Errorf("INFO without a number of evicted_keys: %w", err), 0)
		}
		evicted[at.name] = n
	}
	return evicted, nil
}

// runID is what a server calls its run: another one after each start. It is
// empty when INFO is refused.
func (s *Store) runID(ctx context.Context, client redis.UniversalClient) (string, error) {
	info, err := s.info(ctx, client, "server")
	var failure *Error
	if errors.As(err, &failure) && failure.Refused() {
		return "", nil
	}
	return infoField(info, "run_id"), err
}

func (s *Store) info(ctx context.Context, client redis.UniversalClient, section string) (string, error) {
	var info *redis.StringCmd
	cmds, took := s.sendTo(ctx, client, func(ctx context.Context, pipe redis.Pipeliner) { info = pipe.Info(ctx, section) })
	if failure := s.failure(cmds, took); failure != nil {
		return "", failure
	}
	return info.Val(), nil
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimRight(value, "\r\n")
		}
	}
	return ""
}
