/** What was delivered is not an event: it is requested after the events that cause it. */
import { useEffect, useRef } from 'preact/hooks';
import type { Webhook } from '../../../contract/webhooks';
import { type LiveEvent, useLive } from '../../core/live';

/** After an event it takes a moment until its receiver has answered. */
const DELIVERED_MS = 1_500;

/** Reloads when a delivery has been retried and its receiver had time to answer. @param next RFC 3339; null: never */
export function useAfterTry(reload: () => void, next: string | null | undefined): void {
  const current = useRef(reload);
  current.current = reload;
  useEffect(() => {
    const ms = next ? Date.parse(next) - Date.now() : Number.NaN;
    // A timer that is set for longer would ring at once.
    if (Number.isNaN(ms) || ms > 86_400_000) return;
    const timer = setTimeout(() => current.current(), Math.max(0, ms) + DELIVERED_MS);
    return () => clearTimeout(timer);
  }, [next]);
}

/** These come again and again: they are sent to subscriptions that name them only. */
const FREQUENT = ['job.heartbeat', 'job.progress', 'worker.heartbeat'];

const fits = (pattern: string, text: string) =>
  pattern.endsWith('*') ? text.startsWith(pattern.slice(0, -1)) : text === pattern;

/** Does one of these get the event? Then the object of its deliveries is awake, and may be asked. */
export function isNotified(subscriptions: readonly Webhook[], { event, data }: LiveEvent): boolean {
  // Rules and webhooks that are disabled notify those they name.
  if (/^(alert|webhook)\./.test(event)) return true;
  return subscriptions.some(({ active, events, filter: { queues, types } = {} }) => {
    const isMeant = events.some((name) => fits(name, event) && !(name.endsWith('*') && FREQUENT.includes(event)));
    const isOfQueue = !queues || queues.includes(String(data.queue));
    return active && isMeant && isOfQueue && (!types || types.some((type) => fits(type, String(data.type))));
  });
}

/** Reloads a moment after something happened. */
export function useAfterEvents(reload: () => void, isWanted: (event: LiveEvent) => boolean): void {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useLive('all', {
    onEvents: (events) => {
      if (!events.some(isWanted)) return;
      timer.current ??= setTimeout(() => {
        timer.current = undefined;
        reload();
      }, DELIVERED_MS);
    },
    onGap: reload,
  });
}
