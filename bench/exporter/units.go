package main

import "time"

func seconds(d time.Duration) float64 { return d.Seconds() }

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
