package statemachine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kessai/kessai/infra/local/statemachine"
)

// waiting is a machine that waits as many seconds as its input says.
const waiting = `{"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "SecondsPath": "$.s", "End": true}}}`

func serve(t *testing.T, m *statemachine.Machine) *statemachine.Service {
	t.Helper()
	s := statemachine.NewService(m)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func start(t *testing.T, s *statemachine.Service, name, input string) {
	t.Helper()
	if _, err := s.StartExecution(t.Context(), name, json.RawMessage(input)); err != nil {
		t.Fatal(err)
	}
}

func TestAStartReturnsAtOnceAndTheExecutionOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, load(t, waiting, echoes))
		ctx, cancel := context.WithCancel(t.Context())
		begin := now()
		x, err := s.StartExecution(ctx, "a", json.RawMessage(`{"s":5}`))
		cancel()
		if err != nil || x.Result.Status != statemachine.Running || time.Since(begin) != 0 || !x.StoppedAt.IsZero() {
			t.Errorf("got %+v %v, want RUNNING at once", x, err)
		}
		x, err = s.Wait(t.Context(), "a")
		if err != nil || x.Result.Status != statemachine.Succeeded || x.StoppedAt.Sub(x.StartedAt) != 5*time.Second {
			t.Errorf("got %+v %v, want SUCCEEDED after 5s", x, err)
		}
		if want := "arn:aws:states:local:000000000000:execution:statemachine:a"; x.ID != want {
			t.Errorf("got the id %s, want %s", x.ID, want)
		}
	})
}

func TestANameIsFreeOnlyForTheSameStartWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, load(t, waiting, echoes))
		again := func(input string) error {
			_, err := s.StartExecution(t.Context(), "a", json.RawMessage(input))
			return err
		}
		start(t, s, "a", `{"s":5}`)
		if err := again(`{"s":5}`); err != nil {
			t.Errorf("the same start while it runs: got %v, want no error", err)
		}
		for _, other := range []string{`{"s":6}`, `{"s": 5}`} {
			if err := again(other); !errors.Is(err, statemachine.ErrExecutionAlreadyExists) {
				t.Errorf("another input while it runs: got %v, want ErrExecutionAlreadyExists", err)
			}
		}
		if n := len(s.Executions()); n != 1 {
			t.Errorf("got %d executions, want 1", n)
		}
		if err := s.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := again(`{"s":5}`); !errors.Is(err, statemachine.ErrExecutionAlreadyExists) {
			t.Errorf("the same start after the end: got %v, want ErrExecutionAlreadyExists", err)
		}
		elapse(90*24*time.Hour - time.Second)
		if err := again(`{"s":5}`); !errors.Is(err, statemachine.ErrExecutionAlreadyExists) {
			t.Errorf("just before 90 days: got %v, want ErrExecutionAlreadyExists", err)
		}
		elapse(time.Second)
		if err := again(`{"s":5}`); err != nil {
			t.Errorf("after 90 days: got %v, want no error", err)
		}
		if err := again(`{"s":6}`); !errors.Is(err, statemachine.ErrExecutionAlreadyExists) {
			t.Errorf("the name in its second life: got %v, want ErrExecutionAlreadyExists", err)
		}
	})
}

func TestARefusedStartLeavesNothingBehind(t *testing.T) {
	s := serve(t, load(t, waiting, echoes))
	if _, err := s.StartExecution(t.Context(), "a b", nil); !errors.Is(err, statemachine.ErrInvalidName) {
		t.Errorf("got %v, want ErrInvalidName", err)
	}
	if _, err := s.StartExecution(t.Context(), "a", json.RawMessage(`{`)); !errors.Is(err, statemachine.ErrInvalidInput) {
		t.Errorf("got %v, want ErrInvalidInput", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.StartExecution(ended, "a", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
	if got := s.Executions(); len(got) != 0 {
		t.Errorf("got %v, want no executions", got)
	}
}

func TestNoInputIsAnEmptyObject(t *testing.T) {
	s := serve(t, load(t, passOf(""), echoes))
	start(t, s, "a", "")
	if x, err := s.Wait(t.Context(), "a"); err != nil || string(x.Result.Output) != "{}" {
		t.Errorf("got %s %v, want {}", x.Result.Output, err)
	}
}

func TestWhatTheCallerChangesAfterwardsDoesNotReachTheService(t *testing.T) {
	s := serve(t, load(t, passOf(""), echoes))
	input := json.RawMessage(`{"a":1}`)
	if _, err := s.StartExecution(t.Context(), "a", input); err != nil {
		t.Fatal(err)
	}
	input[5] = '2'
	x, err := s.Wait(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	x.Input[5], x.Result.Output[5], x.Result.History[0].State = '3', '3', "X"
	x, err = s.Execution("a")
	if err != nil || string(x.Input) != `{"a":1}` || string(x.Result.Output) != `{"a":1}` || x.Result.History[0].State != "S" {
		t.Errorf("got %s, %s, %v, %v", x.Input, x.Result.Output, x.Result.History, err)
	}
}

func TestExecutionsAreListedWithTheLatestStartFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, load(t, waiting, echoes))
		for _, name := range []string{"first", "b", "a"} {
			start(t, s, name, `{"s":1}`)
			if name == "first" {
				elapse(time.Minute)
			}
		}
		var got []string
		for _, x := range s.Executions() {
			got = append(got, x.Name+" "+string(x.Result.Status))
		}
		if want := "[a RUNNING b RUNNING first SUCCEEDED]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	})
}

func TestAStoppedExecutionIsAbortedAndItsFunctionGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard error
		returned := false
		s := serve(t, load(t, taskOf(`, "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "End"}]`),
			working(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
				elapse(10 * time.Second)
				heard, returned = ctx.Err(), true
				return nil, nil
			})))
		start(t, s, "a", `{}`)
		synctest.Wait()
		if err := s.StopExecution("a", "Operator", "by hand"); err != nil {
			t.Fatal(err)
		}
		x, err := s.Wait(t.Context(), "a")
		if err != nil || x.Result.Status != statemachine.Aborted || x.Result.Error != "Operator" || x.Result.Cause != "by hand" {
			t.Errorf("got %+v %v, want ABORTED Operator by hand", x.Result, err)
		}
		elapse(time.Minute)
		synctest.Wait()
		if !returned || heard != nil {
			t.Errorf("the function returned: got %t with the context's error %v, want true without one", returned, heard)
		}
		if err := s.StopExecution("a", "Other", "again"); err != nil {
			t.Errorf("a second stop: got %v, want no error", err)
		}
		if x, err = s.Execution("a"); err != nil || x.Result.Error != "Operator" {
			t.Errorf("got %+v %v, want the first stop to stand", x.Result, err)
		}
	})
}

func TestExecutionsThatDoNotExistAreNotFound(t *testing.T) {
	s := serve(t, load(t, waiting, echoes))
	_, errWait := s.Wait(t.Context(), "a")
	_, errExecution := s.Execution("a")
	for _, err := range []error{errWait, errExecution, s.StopExecution("a", "", "")} {
		if !errors.Is(err, statemachine.ErrExecutionDoesNotExist) {
			t.Errorf("got %v, want ErrExecutionDoesNotExist", err)
		}
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, load(t, waiting, echoes))
		start(t, s, "a", `{"s":60}`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Wait(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Wait: got %v, want the end of the context", err)
		}
		if err := s.WaitIdle(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitIdle: got %v, want the end of the context", err)
		}
	})
}

func TestCloseAbortsExecutionsEndsFunctionsAndStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard error
		s := statemachine.NewService(load(t, taskOf(""), working(func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			elapse(time.Second) // some time to tidy up
			heard = ctx.Err()
			return nil, heard
		})))
		start(t, s, "a", `{}`)
		synctest.Wait()
		begin := now()
		if err := s.Close(t.Context()); err != nil || heard == nil || time.Since(begin) != time.Second {
			t.Errorf("got %v after %s, want Close to wait for the function", err, time.Since(begin))
		}
		if x, err := s.Execution("a"); err != nil || x.Result.Status != statemachine.Aborted {
			t.Errorf("got %+v %v, want ABORTED", x.Result, err)
		}
		if _, err := s.StartExecution(t.Context(), "b", nil); !errors.Is(err, statemachine.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("a second Close: got %v, want no error", err)
		}
	})
}

func TestCloseDoesNotWaitLongerThanItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := statemachine.NewService(load(t, taskOf(""), working(func(context.Context, json.RawMessage) (json.RawMessage, error) {
			elapse(time.Hour)
			return nil, nil
		})))
		start(t, s, "a", `{}`)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
		elapse(time.Hour) // the bubble ends only when everything has
	})
}

func TestOnlySoManyExecutionsRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, load(t, waiting, echoes))
		const most = 10_000
		for n := range most {
			start(t, s, fmt.Sprint(n), `{"s":1}`)
		}
		if _, err := s.StartExecution(t.Context(), "more", json.RawMessage(`{"s":1}`)); !errors.Is(err, statemachine.ErrExecutionLimitExceeded) {
			t.Errorf("got %v, want ErrExecutionLimitExceeded", err)
		}
		if err := s.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		start(t, s, "more", `{"s":1}`)

		kept := 0
		for _, x := range s.Executions() {
			if x.Input != nil && x.Result.Status == statemachine.Succeeded {
				kept++
			}
			if x.Result.Status == statemachine.Succeeded && (x.Input == nil) != (x.Result.History == nil) {
				t.Fatalf("execution %s: got only part of its data", x.Name)
			}
		}
		if kept != 1_000 {
			t.Errorf("got %d ended executions with their data, want 1000", kept)
		}
		if _, err := s.StartExecution(t.Context(), "0", json.RawMessage(`{"s":1}`)); !errors.Is(err, statemachine.ErrExecutionAlreadyExists) {
			t.Errorf("the name of an execution without data: got %v, want ErrExecutionAlreadyExists", err)
		}
	})
}
