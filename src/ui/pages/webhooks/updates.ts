/** What was delivered is no event: it is asked for after the events that are told. */
import { useEffect, useRef } from 'preact/hooks';
import { useLive } from '../../core/live';

/** After an event it takes a moment until its receiver has answered. */
const DELIVERED_MS = 1_500;

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
