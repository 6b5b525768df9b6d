/** What was delivered is no event: it is asked for after the events that are told. */
import { useEffect, useRef } from 'preact/hooks';
import { useLive } from '../../core/live';

/** After an event it takes a moment until its receiver has answered. */
const DELIVERED_MS = 1_500;

/**
 * Loads anew when a delivery has been tried again, and its receiver has had time to answer.
 * @param next when it is tried: RFC 3339; null: never
 */
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

/** Loads anew a moment after something happened of which somebody may be told. */
export function useAfterEvents(reload: () => void, isWanted: (event: string) => boolean = () => true): void {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useLive('all', {
    onEvents: (events) => {
      if (!events.some(({ event }) => isWanted(event))) return;
      timer.current ??= setTimeout(() => {
        timer.current = undefined;
        reload();
      }, DELIVERED_MS);
    },
    onGap: reload,
  });
}
