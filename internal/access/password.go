package access

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// User is a line of the password file.
type User struct {
	Name string
	// Hash is of bcrypt.
	Hash []byte
}

// Why a password was not taken, beside ErrThrottled.
var (
	// ErrPassword: there is no such name, or the password is another one. Which of
	// the two is never told.
	ErrPassword = errors.New("wrong name or password")
	// ErrBusy: too many passwords are being checked.
	ErrBusy = errors.New("too many sign-ins at once")
	// errUnknownName is ErrPassword for the record only.
	errUnknownName = errors.New("wrong name")
)

// isCredential reports an error of checkPassword.
func isCredential(err error) bool {
	var wait ErrThrottled
	return errors.Is(err, ErrPassword) || errors.Is(err, ErrBusy) || errors.As(err, &wait)
}

const (
	// maxPassword is what bcrypt reads of a password, in bytes. A longer one would
	// be right with any end.
	maxPassword = 72
	// maxName bounds a name, in bytes.
	maxName = 256
	// slotWait is how long a check waits for its turn.
	slotWait = 5 * time.Second
)

// decoyOf returns a hash that no password fits, as slow as the slowest of the
// users, so that the time tells nothing about which names there are.
func decoyOf(users []User) ([]byte, error) {
	if len(users) == 0 {
		return nil, nil
	}
	cost := 0
	for _, u := range users {
		c, err := bcrypt.Cost(u.Hash)
		if err != nil {
			return nil, fmt.Errorf("access: the hash of %q is none of bcrypt: %w", u.Name, err)
		}
		cost = max(cost, c)
	}
	decoy, err := bcrypt.GenerateFromPassword(newKey(), cost)
	if err != nil {
		return nil, fmt.Errorf("access: make a hash of cost %d: %w", cost, err)
	}
	return decoy, nil
}

// SignIn checks a name and a password and returns the cookie of the sign-in.
// Errors: ErrOtherSite, ErrPassword, ErrThrottled, ErrBusy. All are recorded but ErrBusy.
func (g *Guard) SignIn(r *http.Request, name, password string) (*http.Cookie, error) {
	if err := g.checkPassword(r, name, password); err != nil {
		return nil, err
	}
	return g.begin(r, Password, name, nil)
}

// checkPassword checks a name and its password, and slows down who fails.
func (g *Guard) checkPassword(r *http.Request, name, password string) error {
	from := g.address(r)
	if len(name) > maxName || len(password) > maxPassword {
		return ErrPassword
	}
	user, there := g.users[name]
	if there && g.Memory.proven.has(user, password) {
		return nil
	}
	m := g.Memory
	address := throttledAddress(from)
	if wait := m.addresses.begin(address); wait > 0 {
		return ErrThrottled{wait}
	}
	if wait := m.names.begin(name); wait > 0 {
		m.addresses.right(address, false)
		return ErrThrottled{wait}
	}
	right, err := g.compare(r, user, there, password)
	if err != nil {
		m.names.right(name, false)
		m.addresses.right(address, false)
		return err
	}
	if !right {
		g.signInFailed(r, name, there, from)
		return ErrPassword
	}
	m.names.right(name, true)
	m.addresses.right(address, false)
	m.proven.add(user, password)
	return nil
}

// compare takes as long for a name that is not there as for one that is.
func (g *Guard) compare(r *http.Request, user User, there bool, password string) (right bool, err error) {
	turn := time.NewTimer(slotWait)
	defer turn.Stop()
	select {
	case g.Memory.slots <- struct{}{}:
		defer func() { <-g.Memory.slots }()
	case <-turn.C:
		return false, ErrBusy
	case <-r.Context().Done():
		return false, ErrBusy
	}
	hash := user.Hash
	if !there {
		hash = g.decoy
	}
	return bcrypt.CompareHashAndPassword(hash, []byte(password)) == nil && there, nil
}

const (
	// provenSize is how many right passwords are remembered, provenFor how long: who
	// reads metrics sends one every few seconds, and bcrypt is slow on purpose.
	provenSize, provenFor = 1000, 5 * time.Minute
)

// proven remembers right passwords, as hashes that only this process can make.
type proven struct {
	key []byte
	now func() time.Time

	mu   sync.Mutex
	ends map[string]time.Time
}

func newProven(now func() time.Time) *proven {
	return &proven{key: newKey(), now: now, ends: map[string]time.Time{}}
}

// entry depends on the stored hash, too: a new one makes the old password wrong.
func (p *proven) entry(u User, password string) string {
	return string(sum(p.key, forUser, string(u.Hash), hmacInput(u.Name, password)))
}

func hmacInput(name, password string) []byte {
	return fmt.Appendf(nil, "%d:%s%s", len(name), name, password)
}

func (p *proven) has(u User, password string) bool {
	entry := p.entry(u, password)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now().Before(p.ends[entry])
}

func (p *proven) add(u User, password string) {
	entry := p.entry(u, password)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ends) >= provenSize {
		clear(p.ends)
	}
	p.ends[entry] = p.now().Add(provenFor)
}
