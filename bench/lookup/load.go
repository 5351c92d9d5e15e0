package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"idemscope/bench/figure"
)

const (
	// pagesPerSecond is how many pages begin in a second.
	pagesPerSecond = 200
	// crowded is how many visitors ask again as soon as they have an answer.
	crowded = 200
	// mostConnections is what MySQL may see: the pools of the two ledgers, and one that asks.
	mostConnections = 2*4 + 1
)

// visits counts how requests ended.
type visits struct {
	mu sync.Mutex
	// times of those that were answered.
	times               []time.Duration
	answered, busy, bad int
}

func (v *visits) count(status int, took time.Duration, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case err == nil && status == http.StatusOK:
		v.answered++
		v.times = append(v.times, took)
	case err == nil && status == http.StatusServiceUnavailable:
		v.busy++
	default:
		v.bad++
	}
}

// load measures pages at a steady pace, then with everybody at once.
func (a *api) load(ctx context.Context, s *stores, size sizes) ([]figure.Figure, error) {
	if err := a.steady(ctx, size, size.turn, &visits{}); err != nil { // warms up
		return nil, err
	}
	before := heap()
	var pages visits
	if err := a.steady(ctx, size, size.pages, &pages); err != nil {
		return nil, err
	}
	grown := heap() / before
	var crowd visits
	a.crowd(ctx, size, &crowd)
	connections, err := s.mostConnections(ctx)
	if err != nil {
		return nil, err
	}
	setting := fmt.Sprintf("%d key pages a second for %s", pagesPerSecond, size.pages)
	return []figure.Figure{
		{Name: "page_errors", Value: float64(pages.bad + pages.busy), Unit: "pages", Goal: figure.AtMost(0),
			Setting: fmt.Sprintf("%s; P99 %.1f ms from the time when each was due", setting, figure.Quantile(pages.times, 0.99).Seconds()*1000)},
		{Name: "page_heap_ratio", Value: grown, Goal: figure.AtMost(1.25), Setting: setting + "; live heap after it by before it, client included"},
		{Name: "crowd_errors", Value: float64(crowd.bad), Unit: "pages", Goal: figure.AtMost(0),
			Setting: fmt.Sprintf("%d visitors without a pause for %s: %d pages, %d told that it is busy", crowded, size.crowd, crowd.answered, crowd.busy)},
		{Name: "crowd_mysql_connections", Value: connections, Unit: "connections", Goal: figure.AtMost(mostConnections), Setting: "the most at any time, this measurement's own included"},
	}, nil
}

// steady asks for pages at the fixed pace, whether or not earlier ones have come.
func (a *api) steady(ctx context.Context, size sizes, length time.Duration, v *visits) error {
	var all sync.WaitGroup
	defer all.Wait()
	began := time.Now()
	for i := range int(length.Seconds() * pagesPerSecond) {
		due := began.Add(time.Duration(i) * time.Second / pagesPerSecond)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(due)):
		}
		all.Go(func() {
			status, err := a.page(ctx, size)
			v.count(status, time.Since(due), err)
		})
	}
	return nil
}

// crowd lets many visitors ask as fast as they are answered.
func (a *api) crowd(ctx context.Context, size sizes, v *visits) {
	began := time.Now()
	var all sync.WaitGroup
	for range crowded {
		all.Go(func() {
			for time.Since(began) < size.crowd && ctx.Err() == nil {
				asked := time.Now()
				status, err := a.page(ctx, size)
				v.count(status, time.Since(asked), err)
			}
		})
	}
	all.Wait()
}

// page asks for the page of a key of the large ledger.
func (a *api) page(ctx context.Context, size sizes) (status int, err error) {
	id := strconv.Itoa(1 + rand.IntN(size.large))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/key?"+url.Values{"type": {largeLedger}, "id": {id}}.Encode(), nil)
	if err != nil {
		return 0, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, errors.Join(err, response.Body.Close())
}

// heap is what is alive of it, in bytes.
func heap() float64 {
	runtime.GC()
	runtime.GC() // what finalizers held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// mostConnections is how many connections MySQL has had at the same time since its start.
func (s *stores) mostConnections(ctx context.Context) (n float64, err error) {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User = "tcp", s.mariadb.Addr, "root"
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return 0, err
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var name string
	err = db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Max_used_connections'").Scan(&name, &n)
	return n, err
}
