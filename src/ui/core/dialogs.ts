/** Toasts and questions, asked from anywhere; `components/overlays.tsx` shows them. */
import { signal } from '@preact/signals';
import { type ApiFailure, asFailure } from './api';

export interface Toast {
  id: number;
  kind: 'done' | 'error';
  text: string;
  hint?: string | undefined;
  link?: { href: string; text: string } | undefined;
}

export interface Question {
  title: string;
  text?: string;
  /** On the button: the verb of what happens, "Purge 12 jobs". */
  action: string;
  danger?: boolean;
  /** Must be typed first, as the name of a queue that is deleted. */
  typed?: string;
}

export const toasts = signal<readonly Toast[]>([]);
export const question = signal<(Question & { answer: (yes: boolean) => void }) | undefined>(undefined);

const TOAST_MS = 6_000;
let count = 0;

export function toast(text: string, more: Partial<Omit<Toast, 'id' | 'text'>> = {}): void {
  const id = ++count;
  toasts.value = [...toasts.value.slice(-3), { id, kind: 'done', text, ...more }];
  // An error stays until it has been read.
  if (more.kind !== 'error') setTimeout(() => dismiss(id), TOAST_MS);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function failed(error: unknown): void {
  const { message, hint }: ApiFailure = asFailure(error);
  toast(message, { kind: 'error', hint });
}

export const confirm = (asked: Question): Promise<boolean> =>
  new Promise((resolve) => {
    question.value = {
      ...asked,
      answer: (yes) => {
        question.value = undefined;
        resolve(yes);
      },
    };
  });

/** Runs `work` and shows a toast. @param done its text; absent: no toast on success @returns whether it succeeded */
export async function act(work: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await work();
    if (done) toast(done);
    return true;
  } catch (error) {
    failed(error);
    return false;
  }
}

/** Asks, then acts. @returns whether it was done */
export const askAndAct = async (asked: Question, work: () => Promise<unknown>, done?: string): Promise<boolean> =>
  (await confirm(asked)) && act(work, done);
