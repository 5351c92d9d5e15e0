// Package lab is the user's side of the story: private servers with tables, queues and history, a reference consumer
// that guards its work with all three layers, traffic that goes wrong in the ways that production goes wrong, and
// prepared keys, one for each verdict. `idemscope demo` and the drill run on it.
//
// It talks to MySQL, Redis and RabbitMQ as a careful consumer does, with plain sqlx, go-redis and amqp091-go, and never
// through the packages that read the stores: those are judged by what is written here. It is not a library for
// consumers, it touches no server that it has not started, and it does not know what idemscope concludes.
package lab
