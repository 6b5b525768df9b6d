/**
 * Live updates: pages load once, then change by events, at most once in {@link BATCH_MS}, so sleeping objects are not
 * woken. Paused updates are held and sent on resume.
 */
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { type ConnectionState, type LiveEvent, LiveSocket } from './socket';

export type { LiveEvent } from './socket';

/** Shortest time between two updates of a page, in ms. */
export const BATCH_MS = 800;

/** Events that are held while updates are paused; with more the page reloads instead. */
const HELD = 2_000;

export interface Follower {
  onEvents: (events: readonly LiveEvent[]) => void;
  /** Events may be missing: reload. */
  onGap?: () => void;
}

export const connection = signal<ConnectionState>('off');
export const paused = signal(false);
/** How many events wait while updates are paused. */
export const held = signal(0);
/** Why the server refuses live updates of the page. */
export const refusal = signal('');

const followers = new Map<string, Set<Follower>>();
const waiting = new Map<string, LiveEvent[]>();
const gaps = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;
let notifiedAt = 0;

const socket = new LiveSocket({
  state: (state) => {
    connection.value = state;
  },
  event: (channel, event) => {
    const events = waiting.get(channel) ?? [];
    waiting.set(channel, events);
    if (events.length < HELD) events.push(event);
    else gaps.add(channel);
    if (paused.value) held.value++;
    else notifySoon();
  },
  gap: (channel) => {
    gaps.add(channel);
    if (!paused.value) notifySoon();
  },
  refused: (_, message) => {
    refusal.value = message;
  },
});

/** Sends the first event after a quiet time immediately, later ones in batches. */
function notifySoon(): void {
  if (timer === undefined) timer = setTimeout(notify, Math.max(0, notifiedAt + BATCH_MS - Date.now()));
}

function notify(): void {
  timer = undefined;
  notifiedAt = Date.now();
  held.value = 0;
  const batches = [...waiting];
  const lost = [...gaps];
  waiting.clear();
  gaps.clear();
  for (const channel of lost) for (const follower of followers.get(channel) ?? []) follower.onGap?.();
  for (const [channel, events] of batches) {
    for (const follower of followers.get(channel) ?? []) follower.onEvents(events);
  }
}

export function setPaused(next: boolean): void {
  paused.value = next;
  if (!next && (waiting.size > 0 || gaps.size > 0)) notifySoon();
}

/** The channel of one queue if the filter names only one. @param queues names, separated by commas */
export const channelOf = (queues: string): string =>
  queues === '' || queues.includes(',') ? 'all' : `queue:${queues}`;

/**
 * Follows a channel while the component is shown. The functions may be new at every drawing.
 *
 * @param channel `all`, `queue:NAME` or `job:ID`; undefined: none
 */
export function useLive(channel: string | undefined, follower: Follower): void {
  const current = useRef(follower);
  current.current = follower;
  useEffect(() => {
    if (channel === undefined) return;
    const own: Follower = {
      onEvents: (events) => current.current.onEvents(events),
      onGap: () => current.current.onGap?.(),
    };
    const here = followers.get(channel) ?? new Set();
    followers.set(channel, here.add(own));
    socket.add(channel);
    return () => {
      here.delete(own);
      if (here.size > 0 || followers.get(channel) !== here) return;
      followers.delete(channel);
      waiting.delete(channel);
      gaps.delete(channel);
      refusal.value = '';
      socket.remove(channel);
    };
  }, [channel]);
}
