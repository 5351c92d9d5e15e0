package exporter

import "github.com/prometheus/client_golang/prometheus"

// keyDescs are the metrics of the keys in Redis.
type keyDescs struct {
	locks, locksForever, locksImplausible, markers, markersUnrecorded, markersSampled *prometheus.Desc
	duration, seen, evicted                                                           *prometheus.Desc
}

const lastSweep = " From the last complete sweep of the key space (SCAN and PTTL); keys that came or went during it may be missed."

func newKeyDescs() keyDescs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return keyDescs{
		locks: desc("idem_locks", "Locks of the flow in Redis."+lastSweep, "flow"),
		locksForever: desc("idem_locks_without_ttl",
			"Locks of the flow in Redis that never expire, and still did not when they were looked at again some seconds later."+lastSweep, "flow"),
		locksImplausible: desc("idem_locks_implausible_ttl",
			"Locks of the flow in Redis that have longer to live than the TTL in the configuration allows. Absent for a flow that declares no TTL."+lastSweep, "flow"),
		markers: desc("idem_markers", "Markers of the flow in Redis."+lastSweep, "flow"),
		markersUnrecorded: desc("idem_markers_without_record",
			"Markers of the flow in Redis whose record is not in the ledger, among a random sample of idemscope_markers_sampled markers: to compare with that, not with idem_markers. "+
				"Markers younger than some seconds, ambiguous ones, and those whose ledger could not be read are left out."+lastSweep, "flow"),
		markersSampled: desc("idemscope_markers_sampled",
			"Markers of the flow whose record was looked up for idem_markers_without_record in the last complete sweep of the key space, a few hundred at most.", "flow"),
		duration: desc("idemscope_sweep_duration_seconds",
			"Duration of the last complete sweep of the source, interruptions included: so old the oldest facts in it were at its end.", "source", "kind"),
		seen: desc("idemscope_sweep_keys_seen", "Locks and markers that the last complete sweep of the Redis found, each counted once.", "source"),
		evicted: desc("idem_redis_evicted_keys_total",
			"Keys that the servers of the Redis have evicted for want of memory, from INFO; locks and markers may be among them. Absent when INFO is not permitted.", "redis"),
	}
}

func (d keyDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{d.locks, d.locksForever, d.locksImplausible, d.markers, d.markersUnrecorded, d.markersSampled,
		d.duration, d.seen, d.evicted}
}

func newLockExpirations() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "idem_lock_expirations_total",
		Help: "Locks of the flow that lapsed instead of being released, from the keyspace events of Redis, since this process started. " +
			"Those that lapse while it is not connected are missed. Absent until the server is known to publish them."}, []string{"flow"})
}
