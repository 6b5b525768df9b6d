/** Talking to the handler Workers of the tests behind Tocsin's back: what they saw, and when they may go on. */

import { env } from 'cloudflare:workers';
import { until } from './clock';

export type HandlerName = 'WORK' | 'PLAIN' | 'RAW' | 'CHUNKS' | 'TALK' | 'FICKLE' | 'DEPLOYED' | 'DOWN' | 'INTERNET';

/** One run as a handler Worker saw it. */
export interface Run {
  id: string;
  attempt: number;
  delivery_id?: string;
  headers: Record<string, string>;
  body: Record<string, unknown>;
  aborted: boolean;
  /** Why: the name of the signal's reason. */
  reason?: string;
}

/** A request to a handler Worker, not through any queue. */
export async function handler<T>(name: HandlerName, path: string, body?: string): Promise<T> {
  const binding = (env as unknown as Record<HandlerName, Fetcher>)[name];
  const init = body === undefined ? {} : { method: 'POST', body };
  const response = await binding.fetch(`https://handler.test${path}`, init);
  return (await response.json()) as T;
}

/** Makes those handler Workers that a test can change what they were at first. */
export async function restoreHandlers(): Promise<void> {
  await handler('DOWN', '/down');
  await handler('FICKLE', '/announce', '{"types":[]}');
  await handler('DEPLOYED', '/deploy?version=1');
}

/** Every run of a job, oldest first. */
export const runsOf = (name: 'WORK' | 'PLAIN', id: string) => handler<Run[]>(name, `/runs?id=${id}`);

/** A gate that jobs with `{do: 'gate', gate}` wait at. */
export class Gate {
  constructor(
    private readonly worker: 'WORK' | 'PLAIN' | 'INTERNET',
    readonly name: string = crypto.randomUUID(),
  ) {}

  /** Arguments of a job that waits here. */
  get args(): unknown[] {
    return [{ do: 'gate', gate: this.name }];
  }

  /** Lets all pass, now and later. */
  async open(): Promise<void> {
    await handler(this.worker, `/open?gate=${this.name}`);
  }

  /** How many wait here, and the most there ever were at once. */
  load(): Promise<{ now: number; most: number }> {
    return handler(this.worker, `/load?gate=${this.name}`);
  }

  /** Waits until `count` jobs wait here. */
  async waiting(count: number): Promise<void> {
    let now = 0;
    await until(
      async () => {
        now = (await this.load()).now;
        return now === count;
      },
      () => `${count} jobs to wait at the gate, now ${now}`,
    );
  }
}
