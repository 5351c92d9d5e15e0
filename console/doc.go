// Package console is the page that an on-call engineer opens: one search box,
// and one page per key that puts the verdict, and what each layer shows, side by
// side. The same answers come as JSON.
//
// It is not a place that finds anything out: answers come ready from a Desk, and
// who asks, and what that person may do, from a Guard. It keeps no state, and needs
// no JavaScript and no request to anywhere else. Limits on connections and header
// sizes are those of the server that it is mounted in.
package console
