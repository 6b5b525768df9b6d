/** Does what the model asks for: loads, counts, acts. Failures come back as words. */
import { pathTo } from '../../client/requests';
import { own } from '../../job/own';
import { TocsinError, UnauthorizedError } from '../../producer/errors';
import { failureOf } from '../failure';
import { isCounted, previewsOf, requestsOf, type Wish, wishText } from './actions';
import type { Api } from './api';
import { arrived, counted, failed, notified } from './happen';
import type { Effect, Next, Problem, TopState } from './model';
import { numberText } from './page';
import { pageOf } from './pages/table';
import { foreign } from './text';

/** Changes the state as soon as it is called: what was true when a request began need not be any more. */
export type Change = (change: (state: TopState) => Next) => void;

/** Longest that one look at an operation waits for its end, in s. */
const LOOK_S = 5;

export async function perform(effect: Effect, api: Api, url: string, change: Change): Promise<void> {
  try {
    await work(effect, api, change);
  } catch (error) {
    // Anything else is a defect, and ends the program with its words.
    if (!(error instanceof TocsinError)) throw error;
    const problem = problemOf(error, url);
    change((state) => {
      if ('serial' in effect) return failed(state, effect.serial, problem);
      const isChange = effect.do === 'act';
      return notified(isChange ? { ...state, operation: undefined } : state, wordsOf(problem), 'bad', isChange);
    });
  }
}

async function work(effect: Effect, api: Api, change: Change): Promise<void> {
  switch (effect.do) {
    case 'load': {
      const answer = await pageOf(effect.place.page).load(api, effect.place);
      return change((state) => arrived(state, effect.serial, () => answer, true));
    }
    case 'ask': {
      const patch = await pageOf(effect.place.page).ask?.(api, effect.names);
      return change((state) => arrived(state, effect.serial, patch ?? ((held) => held), false));
    }
    case 'preview':
      return await preview(effect.wish, api, change);
    case 'act':
      return await act(effect.wish, api, change);
    case 'abort':
      // Its outcome is shown by the code that waits for its end.
      await api.write({ method: 'DELETE', path: pathTo`/jobs/bulk/${effect.operation}` });
  }
}

/** Has the server count what a wish would act on. */
async function preview(wish: Wish, api: Api, change: Change): Promise<void> {
  const answers = await Promise.all(previewsOf(wish).map((write) => api.write(write)));
  const matched = answers.reduce((sum, answer) => sum + numberIn(answer, 'matched'), 0);
  const isExact = answers.every(({ matchedIsExact }) => matchedIsExact !== false);
  change((state) => counted(state, wish, matched, isExact));
}

/** Sends the requests of a wish one after the other, and waits for operations that continue in the background. */
async function act(wish: Wish, api: Api, change: Change): Promise<void> {
  const totals = { matched: 0, succeeded: 0, failed: 0 };
  let isStopped = false;
  for (const write of requestsOf(wish)) {
    let answer = await api.write(write);
    const { operationId: id } = answer;
    while (answer.completed === false && typeof id === 'string') {
      const soFar = `${wishText(wish)}: ${progressText(answer)} … Esc stops it`;
      change((state) => notified({ ...state, operation: id }, foreign(soFar), 'plain'));
      answer = await api.get<typeof answer>(`${pathTo`/jobs/bulk/${id}`}?wait=${LOOK_S}`);
    }
    for (const name of ['matched', 'succeeded', 'failed'] as const) totals[name] += numberIn(answer, name);
    isStopped = answer.aborted === true;
    if (isStopped) break;
  }
  const text = isCounted(wish) ? progressText(totals) : 'done';
  const outcome = foreign(`${wishText(wish)}: ${text}${isStopped ? ', then stopped' : ''}`);
  const tone = totals.failed > 0 || isStopped ? 'warn' : 'good';
  change((state) => notified({ ...state, operation: undefined }, outcome, tone, true));
}

function progressText(answer: Readonly<Record<string, unknown>>): string {
  const [matched, succeeded, lost] = ['matched', 'succeeded', 'failed'].map((name) => numberIn(answer, name));
  return `${numberText(succeeded ?? 0)} of ${numberText(matched ?? 0)}${lost ? `, ${numberText(lost)} failed` : ''}`;
}

function numberIn(answer: Readonly<Record<string, unknown>>, name: string): number {
  const value = own(answer, name);
  return typeof value === 'number' ? value : 0;
}

const wordsOf = ({ message, hint }: Problem): string => foreign(hint ? `${message} ${hint}` : message);

/** Errors of a 403 begin with it; the server reports the rest. */
export function problemOf(error: TocsinError, url: string): Problem {
  const { message, hint } = failureOf(error, { url });
  const isForbidden = error instanceof UnauthorizedError && error.status === 403;
  return { message: isForbidden ? `Forbidden (403): ${message}` : message, hint };
}
