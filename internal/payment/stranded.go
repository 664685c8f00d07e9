package payment

// Stranded reports whether p is dead and has money that nobody gives back any more: it
// came late, and its refund has failed for good. A person must act; another refund ends it.
func (p Payment) Stranded() bool {
	switch p.Status {
	case StatusFailed, StatusCanceled:
		return p.Refundable() > 0
	case StatusCreated, StatusProcessing, StatusRequiresAction, StatusAuthorized, StatusCaptured, StatusRefunded:
	}
	return false
}
