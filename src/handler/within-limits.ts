/** The call of a handler: within the time limit of its run, with a slot, and until it is stopped. */
import type { Host } from './host';
import type { Registration } from './registry';
import type { RunSignal } from './run-signal';
import { Deadlines, type TimeLimit } from './time-limit';

interface Limited {
  registration: Registration;
  host: Host;
  aborter: RunSignal;
  time: TimeLimit;
}

/** Calls a handler, with a slot. @param listen is given what stops it, and returns what ends that */
export async function withinLimits(
  { registration, host, aborter, time }: Limited,
  listen: (stop: (reason: Error) => void) => readonly ((() => void) | undefined)[],
  call: () => Promise<unknown>,
): Promise<unknown> {
  let settle!: { resolve: (value: unknown) => void; reject: (reason: unknown) => void };
  const ended = new Promise((resolve, reject) => {
    settle = { resolve, reject };
  });
  // A handler need not react to its signal: what it does afterwards is not waited for.
  const stop = (reason: Error): void => {
    settle.reject(reason);
    aborter.abort(reason);
  };
  time.begin(stop);
  const unlisten = listen(stop);
  let release: (() => void) | undefined;
  let isOver = false;
  const execute = async (): Promise<unknown> => {
    if (registration.slots) {
      const give = await registration.slots.acquire(time.deadline, aborter.signal);
      if (isOver) give();
      else release = give;
    }
    return await call();
  };
  execute().then(settle.resolve, settle.reject);
  // Only now that the handler has begun: to set a timer takes a while.
  const { deadlines = new Deadlines() } = host;
  const unwatch = time.watch(deadlines);
  try {
    return await ended;
  } finally {
    isOver = true;
    unwatch();
    for (const one of unlisten) one?.();
    aborter.end();
    release?.();
  }
}
