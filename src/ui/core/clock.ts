/** The time that relative times refer to. One timer for all, which runs only while something shows one. */
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';

export const now = signal(Date.now());

let users = 0;
let timer: ReturnType<typeof setInterval> | undefined;

/** The time to within a second. Epoch ms. */
export function useNow(): number {
  useEffect(() => {
    users++;
    timer ??= setInterval(() => {
      if (document.visibilityState === 'visible') now.value = Date.now();
    }, 1_000);
    return () => {
      if (--users > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  }, []);
  return now.value;
}

/** Follows a number that rises, at most once in `everyMs`. */
export function useSlowly(round: number, everyMs: number): number {
  const [shown, setShown] = useState(round);
  const latest = useRef(round);
  latest.current = round;
  const isWaiting = round !== shown;
  useEffect(() => {
    if (!isWaiting) return;
    const timer = setTimeout(() => setShown(latest.current), everyMs);
    return () => clearTimeout(timer);
  }, [isWaiting]);
  return shown;
}
