package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"idemscope/internal/flow"
	"idemscope/internal/testkit"
)

func key(bizType, id string) flow.Key { return flow.Key{BizType: bizType, BizID: id} }

func TestDeliveriesAreCountedPerKeyWhileArmed(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	tr := s.newTrace(t, ownGuard)
	s.send(t, "order.paid", "order_paid", "early")
	if err := s.deliver(t, "order.paid").Ack(false); err != nil {
		t.Fatal(err)
	}
	if a := tr.Tell(t.Context(), payments, key("order_paid", "early")); a != nil {
		t.Errorf("before the first trace: %+v", a)
	}
	if err := tr.Arm(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if !s.tracing(t) || !tr.Status().Armed {
		t.Error("tracing is not on")
	}
	for _, id := range []string{"1", "2"} {
		s.send(t, "order.paid", "order_paid", id)
	}
	d := s.deliver(t, "order.paid")
	if err := d.Nack(false, true); err != nil { // comes again
		t.Fatal(err)
	}
	for range 2 {
		if err := s.deliver(t, "order.paid").Ack(false); err != nil {
			t.Fatal(err)
		}
	}
	s.send(t, "order.paid.dlq", "refund", "3")
	if err := s.deliver(t, "order.paid.dlq").Ack(false); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, soon, func() bool { return tr.Status().Deliveries == 4 }, "deliveries: %+v", tr.Status())
	a := tr.Tell(t.Context(), payments, key("order_paid", "1"))
	if len(a.Events) != 2 || a.State != flow.Found || !a.Covers(time.Now()) || a.Covers(time.Now().Add(-time.Hour)) {
		t.Fatalf("%+v", a)
	}
	first, second := a.Events[0], a.Events[1]
	if first.Kind != flow.Delivered || first.Place != "order.paid" || first.MessageID != "m-1" || !first.Arrived || first.Redelivered || !second.Redelivered ||
		!strings.Contains(first.Worker, "127.0.0.1:") || !strings.Contains(first.Worker, "(admin)") {
		t.Errorf("%+v\n%+v", first, second)
	}
	if a := tr.Tell(t.Context(), payments, key("order_paid", "early")); a.State != flow.Absent || a.Covers(time.Now().Add(-time.Hour)) {
		t.Errorf("delivered before: %+v", a)
	}
	if top := tr.Counts(1); len(top) != 1 || top[0].Key != key("order_paid", "1") || top[0].Deliveries != 2 || top[0].Redelivered != 1 {
		t.Errorf("%+v", top)
	}
	if e := tr.Tell(t.Context(), payments, key("refund", "3")).Events; len(e) != 1 || e[0].Place != "order.paid.dlq" {
		t.Errorf("%+v", e)
	}

	tr.Disarm()
	if s.tracing(t) || tr.Status().Armed {
		t.Error("tracing is still on")
	}
	a = tr.Tell(t.Context(), payments, key("order_paid", "1"))
	if a.State != flow.Found || len(a.Events) != 2 || a.Covers(time.Now()) {
		t.Errorf("afterwards: %+v", a)
	}
	if a := tr.Tell(t.Context(), payments, key("order_paid", "9")); a.State != flow.Unknown || !strings.Contains(a.Reason.EN, "the trace ran from") || a.Reason.ZH == "" {
		t.Errorf("afterwards: %+v", a)
	}
	if q, err := s.ch.QueueDeclarePassive(Queue, true, false, false, false, nil); err == nil {
		t.Errorf("the queue is left: %+v", q)
	}
}

func TestATraceOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	tr := s.newTrace(t, ownGuard)
	s.call(t, "PUT", map[string]bool{"tracing": true}, nil, "vhosts", s.Name)
	if err := tr.Arm(t.Context(), time.Minute); !errors.Is(err, ErrOn) {
		t.Errorf("got %v", err)
	}
	if done, err := tr.Recover(t.Context()); done || err != nil || !s.tracing(t) {
		t.Errorf("recovered %v, %v", done, err)
	}
}

func TestOnlyOneTraceIsArmedAtATime(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	tr, other := s.newTrace(t, ownGuard), s.newTrace(t, ownGuard)
	if err := tr.Arm(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := tr.Arm(t.Context(), time.Minute); !errors.Is(err, ErrArmed) {
		t.Errorf("the same once more: %v", err)
	}
	if err := other.Arm(t.Context(), time.Minute); !errors.Is(err, ErrOn) {
		t.Errorf("another process: %v", err)
	}
	if done, err := other.Recover(t.Context()); done || err != nil || !s.tracing(t) {
		t.Errorf("another process ended it: %v %v", done, err)
	}
	for _, d := range []time.Duration{time.Second, time.Hour} {
		if err := other.Arm(t.Context(), d); !errors.Is(err, ErrTime) {
			t.Errorf("%s: %v", d, err)
		}
	}
}

func TestTheTraceEndsWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	tr := s.newTrace(t, ownGuard)
	if err := tr.Arm(t.Context(), MinTime); err != nil {
		t.Fatal(err)
	}
	select {
	case <-tr.Done():
	case <-time.After(soon):
		t.Fatal("it does not end")
	}
	if s.tracing(t) || tr.Status().Armed || !tr.Status().Fault.Empty() {
		t.Errorf("%+v", tr.Status())
	}
}

func TestALostConnectionTurnsTracingOff(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	proxy := testkit.NewProxy(t, s.uri.Host)
	s.site.AMQP = strings.Replace(s.site.AMQP, s.uri.Host, proxy.Addr, 1)
	tr := s.newTrace(t, ownGuard)
	if err := tr.Arm(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	proxy.Drop(true)
	select {
	case <-tr.Done():
	case <-time.After(soon):
		t.Fatal("it does not end")
	}
	if s.tracing(t) || tr.Status().Armed || tr.Status().Fault.ZH == "" {
		t.Errorf("%+v", tr.Status())
	}
}

func TestNoGuardNoTrace(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for what, guard := range map[string]func() (*exec.Cmd, error){
		"no program": func() (*exec.Cmd, error) { return exec.Command("/no/such/program"), nil },
		"dies":       func() (*exec.Cmd, error) { return exec.Command("false"), nil },
		"no command": func() (*exec.Cmd, error) { return nil, errors.New("none") },
	} {
		tr := s.newTrace(t, guard)
		err := tr.Arm(t.Context(), time.Minute)
		if err == nil || !strings.Contains(err.Error(), "not armed") || strings.Contains(err.Error(), password) || s.tracing(t) {
			t.Errorf("%s: %v, tracing %v", what, err, s.tracing(t))
		}
	}
}

// startParent runs a process that arms a trace, and returns it armed.
func startParent(t *testing.T, s *shop) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	order, err := json.Marshal(s.site)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "parent")
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(order)), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if word, err := bufio.NewReader(out).ReadString('\n'); word != "armed\n" {
		t.Fatalf("the parent says %q, %v", word, err)
	}
	if !s.tracing(t) {
		t.Fatal("tracing is not on")
	}
	return cmd
}

func TestTracingIsTurnedOffAfterKill9(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	cmd := startParent(t, s)
	if err := cmd.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = cmd.Wait()
	testkit.Eventually(t, soon, func() bool { return !s.tracing(t) }, "tracing is still on")
}

// When the guard dies as well, the next start turns tracing off.
func TestAnAbandonedTraceIsTurnedOffAtTheNextStart(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	tr := s.newTrace(t, ownGuard)
	r := &run{trace: tr, index: tr.newIndex(), done: make(chan struct{})}
	if _, err := r.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.call(t, "PUT", map[string]bool{"tracing": true}, nil, "vhosts", s.Name)
	if done, err := tr.Recover(t.Context()); done || err != nil {
		t.Errorf("while its owner lives: %v %v", done, err)
	}
	_ = r.conn.Close()
	var err error
	testkit.Eventually(t, soon, func() bool {
		var done bool
		done, err = tr.Recover(t.Context())
		return done || err != nil
	}, "it is not recognized")
	if err != nil || s.tracing(t) {
		t.Errorf("%v, tracing %v", err, s.tracing(t))
	}
}

func TestAGuardThatIsToldToStopTurnsTracingOff(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.call(t, "PUT", map[string]bool{"tracing": true}, nil, "vhosts", s.Name)
	cmd, err := ownGuard()
	if err != nil {
		t.Fatal(err)
	}
	g, err := startGuard(t.Context(), cmd, Order{Management: s.Management, Vhost: s.Name, User: s.site.User, Password: password, Deadline: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil { // Ctrl-C is not for it
		t.Fatal(err)
	}
	if !s.tracing(t) {
		t.Error("tracing went off")
	}
	g.abandon()
	<-g.done
	if s.tracing(t) {
		t.Error("tracing is still on")
	}
}

func TestTheGuardRefusesWhatIsNoOrder(t *testing.T) {
	for text, want := range map[string]string{"": "no order", "tell-nobody\n": "cannot be read", "{}\n": "a user is needed", `{"User":"u","Management":"http://h","CA":"tell-nobody"}` + "\n": "no certificate"} {
		var out strings.Builder
		if err := Guard(strings.NewReader(text), &out); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), password) || out.Len() > 0 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestADeliveryIsCountedByItsMessageIDWhereThatIsTheBizID(t *testing.T) {
	charges := flow.Flow{Name: "charges", BizTypes: []string{"charge"}, Queue: &flow.Queue{Broker: "rabbit", Name: "charges", IDProperty: flow.PropertyMessageID}}
	x := (&Trace{flows: []flow.Flow{charges}}).newIndex()
	for _, id := range []string{"1", "1", "2", ""} {
		x.add(amqp.Delivery{RoutingKey: deliverPrefix + "charges", Body: []byte("no JSON"), Headers: amqp.Table{"properties": amqp.Table{"message_id": id}}}, time.Now())
	}
	if top := x.top(3); len(top) != 2 || top[0].Key != (flow.Key{BizType: "charge", BizID: "1"}) || top[0].Deliveries != 2 || x.unread != 1 {
		t.Errorf("%+v, %d unreadable", top, x.unread)
	}
}
