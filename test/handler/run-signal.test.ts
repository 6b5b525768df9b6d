import { describe, expect, it } from 'vitest';
import { RunSignal } from '../../src/handler/run-signal';

const why = new Error('why');

describe('the signal of a run', () => {
  it('is the same at every access, and has the reason of the first stop', () => {
    const run = new RunSignal();
    const { signal } = run;
    expect(signal.aborted).toBe(false);
    run.abort(why);
    run.abort(new Error('another'));
    expect(run.signal).toBe(signal);
    expect(run.isAborted).toBe(true);
    expect(signal.reason).toBe(why);
  });

  it('is aborted from the beginning where the run was stopped before anybody asked', () => {
    const run = new RunSignal();
    run.abort(why);
    expect(run.signal.reason).toBe(why);
  });

  it.each([
    [
      'before it is asked for',
      (call: AbortController, run: RunSignal) => {
        call.abort(why);
        return run.signal;
      },
    ],
    [
      'afterwards',
      (call: AbortController, run: RunSignal) => {
        const { signal } = run;
        call.abort(why);
        return signal;
      },
    ],
  ])('follows that of the call when this aborts %s', (_, act) => {
    const call = new AbortController();
    const run = new RunSignal(call);
    expect(act(call, run).reason).toBe(why);
    // The call is gone; nobody has stopped the run.
    expect(run.isAborted).toBe(false);
  });

  it.each([true, false])('follows no other signal once the run is over (asked for before: %s)', (isEarly) => {
    const call = new AbortController();
    const run = new RunSignal(call);
    if (isEarly) void run.signal;
    run.end();
    call.abort(why);
    expect(run.signal.aborted).toBe(false);
  });

  it('does not ask the call for its own before it is asked for', () => {
    let asked = 0;
    const call = {
      get signal() {
        asked++;
        return AbortSignal.abort(why);
      },
    };
    const run = new RunSignal(call);
    expect(asked).toBe(0);
    expect(run.signal.reason).toBe(why);
  });
});
