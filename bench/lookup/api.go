package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"idemscope/console"
	"idemscope/internal/answer"
	"idemscope/internal/broker/rabbitmq"
	"idemscope/internal/dossier"
	"idemscope/internal/flow"
	"idemscope/internal/ledger"
	"idemscope/internal/lockstore"
)

// deadline of one store. A look-up that reaches it counts with all that it took.
const deadline = 2 * time.Second

// api is the console of this process, asked over a loopback port.
type api struct {
	url    string
	client *http.Client
	stops  []func() error
}

// serve sets the console up on the stores, as the program does.
func serve(s *stores) (a *api, err error) {
	a = &api{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: crowded}, Timeout: time.Minute}}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.stop())
		}
	}()
	desk, flows, err := a.desk(s)
	if err != nil {
		return nil, err
	}
	handler, err := console.New(console.Options{Desk: desk, Flows: flows})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	a.stops = append(a.stops, server.Close)
	a.url = "http://" + listener.Addr().String()
	return a, nil
}

func (a *api) stop() error {
	a.client.CloseIdleConnections()
	var errs []error
	for i := len(a.stops) - 1; i >= 0; i-- {
		errs = append(errs, a.stops[i]())
	}
	return errors.Join(errs...)
}

// desk opens the stores, with a flow for each ledger.
func (a *api) desk(s *stores) (*answer.Desk, []flow.Flow, error) {
	records, types := map[string]dossier.Records{}, map[string]answer.Types{}
	var flows []flow.Flow
	for _, name := range ledgers {
		opened, err := a.ledger(s, name)
		if err != nil {
			return nil, nil, err
		}
		records[name], types[name] = opened, opened
		f := flow.Flow{Name: name, BizTypes: []string{name}, Ledger: name, StaleAfter: 5 * time.Minute, OnProcessing: flow.Refuse, Rerun: flow.RerunManual,
			Queue: &flow.Queue{Broker: "rabbit", Name: queue}}
		if f.Lock, err = redisKey("idem_lock:{biz_type}:{biz_id}", 15*time.Second); err != nil {
			return nil, nil, err
		}
		if f.Marker, err = redisKey("idempotent:{biz_type}:{biz_id}", 24*time.Hour); err != nil {
			return nil, nil, err
		}
		flows = append(flows, f)
	}
	keys, err := lockstore.New(lockstore.Options{Name: "main", Addresses: []string{s.redis.Addr}, Timeout: deadline})
	if err != nil {
		return nil, nil, err
	}
	a.stops = append(a.stops, keys.Close)
	broker, err := rabbitmq.New(rabbitmq.Options{Name: "rabbit", Management: s.rabbit.Management, User: monitor, Password: monitor, Timeout: deadline})
	if err != nil {
		return nil, nil, err
	}
	a.stops = append(a.stops, broker.Close)
	catalog := flow.NewCatalog(flows)
	gatherer, err := dossier.NewGatherer(dossier.Options{Catalog: catalog, Ledgers: records, Redis: map[string]dossier.Keys{"main": keys},
		Brokers: map[string]dossier.Queues{"rabbit": broker}, Deadline: deadline})
	if err != nil {
		return nil, nil, err
	}
	return answer.NewDesk(answer.Options{Catalog: catalog, Gatherer: gatherer, Ledgers: types}), flows, nil
}

func (a *api) ledger(s *stores, name string) (*ledger.Ledger, error) {
	server, err := ledger.NewServer(ledger.ServerOptions{Name: name, Address: s.mariadb.Addr, Database: name, User: "root"})
	if err != nil {
		return nil, err
	}
	a.stops = append(a.stops, server.Close)
	mapping, err := ledger.NewMapping(table, ledger.MappingSpec{})
	if err != nil {
		return nil, err
	}
	return ledger.New(ledger.Options{Name: name, Server: server, Table: table, Mapping: mapping})
}

func redisKey(text string, ttl time.Duration) (*flow.RedisKey, error) {
	template, err := flow.ParseTemplate(text)
	if err != nil {
		return nil, err
	}
	return &flow.RedisKey{Redis: "main", Template: template, TTL: ttl}, nil
}

// asked is what a turn came to.
type asked struct {
	// times are how long after it was due each look-up ended.
	times []time.Duration
	// unread counts those of which a store gave no answer in time.
	unread int
}

// turn looks keys of one ledger up at the fixed pace, whether or not earlier
// look-ups have ended.
func (a *api) turn(ctx context.Context, ledger string, size sizes, length time.Duration) (asked, error) {
	rows := map[string]int{largeLedger: size.large, smallLedger: size.small}[ledger]
	n := int(length.Seconds() * perSecond)
	times, errs := make([]time.Duration, n), make([]error, n)
	var unread atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for i := range n {
		due := began.Add(time.Duration(i) * time.Second / perSecond)
		select {
		case <-ctx.Done():
			all.Wait()
			return asked{}, ctx.Err()
		case <-time.After(time.Until(due)):
		}
		// One in twenty was never seen.
		id := strconv.Itoa(1 + rand.IntN(rows+rows/20))
		all.Go(func() {
			read, err := a.lookUp(ctx, ledger, id)
			times[i], errs[i] = time.Since(due), err
			if !read {
				unread.Add(1)
			}
		})
	}
	all.Wait()
	return asked{times: times, unread: int(unread.Load())}, errors.Join(errs...)
}

// lookUp asks for one key and reports whether every store was read.
func (a *api) lookUp(ctx context.Context, bizType, id string) (read bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/api/v1/lookup?"+url.Values{"type": {bizType}, "id": {id}}.Encode(), nil)
	if err != nil {
		return false, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return false, err
	}
	var said answer.JSON
	if err := json.Unmarshal(body, &said); err != nil || response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("look up %s %s: %s, %v", bizType, id, response.Status, err)
	}
	states := []flow.State{said.Record.State, said.Lock.State, said.Marker.State, said.Broker.State}
	return !slices.Contains(states, flow.Error), nil
}
