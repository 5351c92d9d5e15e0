package app

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"idemscope/internal/access"
	"idemscope/internal/config"
	"idemscope/janitor"
)

// service answers from the current generation and replaces it on demand.
type service struct {
	file   string
	logger *slog.Logger
	// process holds the metrics that outlive a configuration.
	process     *prometheus.Registry
	succeeded   prometheus.Gauge
	succeededAt prometheus.Gauge
	// cleaned are the janitor's metrics, which belong to process, too.
	cleaned *janitor.Metrics
	// memory outlives a configuration, so that a reload signs nobody out.
	memory *access.Memory

	// reloading is held for one whole reload; mu only to exchange current.
	reloading sync.Mutex
	mu        sync.Mutex
	current   *generation
}

// newService sets up the first generation.
func newService(file string, logger *slog.Logger) (*service, error) {
	s := &service{
		file: file, logger: logger, process: prometheus.NewRegistry(), cleaned: janitor.NewMetrics(), memory: access.NewMemory(nil),
		succeeded: prometheus.NewGauge(prometheus.GaugeOpts{Name: "idemscope_config_last_reload_successful",
			Help: "1 if the last reading of the configuration file succeeded, else 0: then the configuration before it is still in force."}),
		succeededAt: prometheus.NewGauge(prometheus.GaugeOpts{Name: "idemscope_config_last_reload_success_timestamp_seconds",
			Help: "When the configuration in force was read, by this process's clock."}),
	}
	s.process.MustRegister(s.succeeded, s.succeededAt, s.cleaned)
	c, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	if s.current, err = newGeneration(c, s.process, s.cleaned, s.memory, logger); err != nil {
		return nil, err
	}
	s.succeeded.Set(1)
	s.succeededAt.SetToCurrentTime()
	return s, nil
}

// reload reads the configuration anew. On any error the old one stays in force,
// untouched. Counters that this process adds up begin at zero again.
func (s *service) reload() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	next, err := s.prepare()
	if err != nil {
		s.succeeded.Set(0)
		s.logger.Error("configuration was not reloaded; the old one stays in force", "err", err)
		return err
	}
	s.mu.Lock()
	old := s.current
	s.current = next
	s.mu.Unlock()
	s.succeeded.Set(1)
	s.succeededAt.SetToCurrentTime()
	s.logger.Info("configuration reloaded", "file", s.file)
	if err := old.close(); err != nil {
		s.logger.Warn("the old configuration's stores did not close cleanly", "err", err)
	}
	return nil
}

func (s *service) prepare() (*generation, error) {
	c, err := config.Load(s.file)
	if err != nil {
		return nil, err
	}
	was := s.current.config
	for key, changed := range map[string]bool{
		"listen": c.Listen != was.Listen, "metrics_listen": c.MetricsListen != was.MetricsListen, "web_config": c.WebConfig != was.WebConfig,
	} {
		if changed {
			return nil, fmt.Errorf("%s: %s: cannot change while the program runs; restart it, or put the old value back", c.At(key), key)
		}
	}
	return newGeneration(c, s.process, s.cleaned, s.memory, s.logger)
}

// enter returns the current generation and keeps it open until leave.
func (s *service) enter() (g *generation, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current.requests.Add(1)
	return s.current, s.current.requests.Done
}

// close ends the current generation.
func (s *service) close() error { return s.current.close() }

// ServeHTTP answers console, API and /metrics, and POST /-/reload.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g, leave := s.enter()
	prefix := g.config.Console.PathPrefix
	leave()
	below(prefix, http.HandlerFunc(s.serveRoot)).ServeHTTP(w, r)
}

// serveRoot answers below the path prefix.
func (s *service) serveRoot(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/-/reload" {
		s.serveReload(w, r)
		return
	}
	g, leave := s.enter()
	defer leave()
	g.console.ServeHTTP(w, r)
}

// mayReload decides before the reload begins, which waits for open requests.
func (s *service) mayReload(r *http.Request) error {
	g, leave := s.enter()
	defer leave()
	return g.guard.AdmitReload(r)
}

// serveReload answers with the real result, to whoever may reload.
func (s *service) serveReload(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "reload with POST", http.StatusMethodNotAllowed)
		return
	}
	if err := s.mayReload(r); err != nil {
		status := http.StatusForbidden
		if errors.Is(err, access.ErrSignIn) || errors.Is(err, access.ErrPassword) {
			w.Header().Set("WWW-Authenticate", `Basic realm="idemscope", charset="UTF-8"`)
			status = http.StatusUnauthorized
		}
		http.Error(w, "not reloaded: "+err.Error(), status)
		return
	}
	if err := s.reload(); err != nil {
		status := http.StatusInternalServerError
		var problems config.Problems
		if errors.As(err, &problems) {
			status = http.StatusUnprocessableEntity
		}
		http.Error(w, "not reloaded, the old configuration stays in force:\n"+err.Error(), status)
		return
	}
	_, _ = fmt.Fprintln(w, "reloaded")
}

// metricsOnly answers /metrics and health, for the listener without users.
func (s *service) metricsOnly() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		g, leave := s.enter()
		defer leave()
		g.metrics.ServeHTTP(w, r)
	})
	for _, path := range []string{"GET /healthz", "GET /readyz"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			g, leave := s.enter()
			defer leave()
			g.console.ServeHTTP(w, r)
		})
	}
	return mux
}

// newServer bounds what a client can cost.
func newServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       time.Minute,
		// An id of 10 kB is three times as long in a URL.
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}
