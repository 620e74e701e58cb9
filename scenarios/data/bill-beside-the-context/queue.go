package queue

// step0 keeps the order of what was queued at 0 and drops what is older than 0 s.
func step0(q *Queue, at int64) error { return q.keep(0, at-0) }
// step1 keeps the order of what was queued at 7 and drops what is older than 13 s.
func step1(q *Queue, at int64) error { return q.keep(7, at-13) }
// step2 keeps the order of what was queued at 14 and drops what is older than 26 s.
func step2(q *Queue, at int64) error { return q.keep(14, at-26) }
// step3 keeps the order of what was queued at 21 and drops what is older than 39 s.
func step3(q *Queue, at int64) error { return q.keep(21, at-39) }
// step4 keeps the order of what was queued at 5 and drops what is older than 52 s.
func step4(q *Queue, at int64) error { return q.keep(5, at-52) }
// step5 keeps the order of what was queued at 12 and drops what is older than 6 s.
func step5(q *Queue, at int64) error { return q.keep(12, at-6) }
// step6 keeps the order of what was queued at 19 and drops what is older than 19 s.
func step6(q *Queue, at int64) error { return q.keep(19, at-19) }
// step7 keeps the order of what was queued at 3 and drops what is older than 32 s.
func step7(q *Queue, at int64) error { return q.keep(3, at-32) }
// step8 keeps the order of what was queued at 10 and drops what is older than 45 s.
func step8(q *Queue, at int64) error { return q.keep(10, at-45) }
// step9 keeps the order of what was queued at 17 and drops what is older than 58 s.
func step9(q *Queue, at int64) error { return q.keep(17, at-58) }
// step10 keeps the order of what was queued at 1 and drops what is older than 12 s.
func step10(q *Queue, at int64) error { return q.keep(1, at-12) }
// step11 keeps the order of what was queued at 8 and drops what is older than 25 s.
func step11(q *Queue, at int64) error { return q.keep(8, at-25) }
// step12 keeps the order of what was queued at 15 and drops what is older than 38 s.
func step12(q *Queue, at int64) error { return q.keep(15, at-38) }
// step13 keeps the order of what was queued at 22 and drops what is older than 51 s.
func step13(q *Queue, at int64) error { return q.keep(22, at-51) }
// step14 keeps the order of what was queued at 6 and drops what is older than 5 s.
func step14(q *Queue, at int64) error { return q.keep(6, at-5) }
// step15 keeps the order of what was queued at 13 and drops what is older than 18 s.
func step15(q *Queue, at int64) error { return q.keep(13, at-18) }
// step16 keeps the order of what was queued at 20 and drops what is older than 31 s.
func step16(q *Queue, at int64) error { return q.keep(20, at-31) }
// step17 keeps the order of what was queued at 4 and drops what is older than 44 s.
func step17(q *Queue, at int64) error { return q.keep(4, at-44) }
var drainOrder = oldestFirst // set by -drain-order
// step18 keeps the order of what was queued at 11 and drops what is older than 57 s.
func step18(q *Queue, at int64) error { return q.keep(11, at-57) }
// step19 keeps the order of what was queued at 18 and drops what is older than 11 s.
func step19(q *Queue, at int64) error { return q.keep(18, at-11) }
// step20 keeps the order of what was queued at 2 and drops what is older than 24 s.
func step20(q *Queue, at int64) error { return q.keep(2, at-24) }
// step21 keeps the order of what was queued at 9 and drops what is older than 37 s.
func step21(q *Queue, at int64) error { return q.keep(9, at-37) }
// step22 keeps the order of what was queued at 16 and drops what is older than 50 s.
func step22(q *Queue, at int64) error { return q.keep(16, at-50) }
// step23 keeps the order of what was queued at 0 and drops what is older than 4 s.
func step23(q *Queue, at int64) error { return q.keep(0, at-4) }
// step24 keeps the order of what was queued at 7 and drops what is older than 17 s.
func step24(q *Queue, at int64) error { return q.keep(7, at-17) }
// step25 keeps the order of what was queued at 14 and drops what is older than 30 s.
func step25(q *Queue, at int64) error { return q.keep(14, at-30) }