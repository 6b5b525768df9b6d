/** Does what the model asks for: loads, counts, acts. Failures come back as words. */
import { pathTo } from '../../client/transport';
import { TocsinError, UnauthorizedError } from '../../producer/errors';
import { failureOf } from '../failure';
import { isCounted, previewsOf, requestsOf, type Wish, wishText } from './actions';
import type { Api } from './api';
import { arrived, counted, failed, told } from './happen';
import type { Effect, Next, Problem, TopState } from './model';
import { numberText } from './page';
import { pageOf } from './pages/table';
import { foreign } from './text';

/** Changes the state as soon as it is called: what was true when a request began need not be any more. */
export type Change = (change: (state: TopState) => Next) => void;

/** Longest that one look at an operation waits for its end, in s. */
const LOOK_S = 5;

/** @param url for what is said about it */
export async function perform(effect: Effect, api: Api, url: string, change: Change): Promise<void> {
  switch (effect.do) {
    case 'load': {
      const { place, serial } = effect;
      await trying(
        url,
        (problem) => change((state) => failed(state, serial, problem)),
        async () => {
          const answer = await pageOf(place.page).load(api, place);
          change((state) => arrived(state, serial, () => answer, true));
        },
      );
      break;
    }
    case 'ask': {
      const { place, serial, names } = effect;
      await trying(
        url,
        (problem) => change((state) => failed(state, serial, problem)),
        async () => {
          const patch = await pageOf(place.page).ask?.(api, names);
          change((state) => arrived(state, serial, patch ?? ((answer) => answer), false));
        },
      );
      break;
    }
    case 'preview':
      await trying(
        url,
        (problem) => change((state) => told(state, wordsOf(problem), 'bad')),
        async () => {
          const answers = await Promise.all(previewsOf(effect.wish).map((write) => api.write(write)));
          const matched = answers.reduce((sum, answer) => sum + numberIn(answer, 'matched'), 0);
          const isExact = answers.every(({ matchedIsExact }) => matchedIsExact !== false);
          change((state) => counted(state, effect.wish, matched, isExact));
        },
      );
      break;
    case 'act':
      await trying(
        url,
        (problem) => change((state) => told({ ...state, operation: undefined }, wordsOf(problem), 'bad', true)),
        () => act(effect.wish, api, change),
      );
      break;
    case 'abort':
      // Its outcome is shown by the code that waits for its end.
      await trying(
        url,
        (problem) => change((state) => told(state, wordsOf(problem), 'bad')),
        async () => void (await api.write({ method: 'DELETE', path: pathTo`/jobs/bulk/${effect.operation}` })),
      );
      break;
    default:
  }
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
      change((state) => told({ ...state, operation: id }, foreign(soFar), 'plain'));
      answer = await api.get<typeof answer>(`${pathTo`/jobs/bulk/${id}`}?wait=${LOOK_S}`);
    }
    for (const name of ['matched', 'succeeded', 'failed'] as const) totals[name] += numberIn(answer, name);
    isStopped = answer.aborted === true;
    if (isStopped) break;
  }
  const text = isCounted(wish) ? progressText(totals) : 'done';
  const said = foreign(`${wishText(wish)}: ${text}${isStopped ? ', then stopped' : ''}`);
  const tone = totals.failed > 0 || isStopped ? 'warn' : 'good';
  change((state) => told({ ...state, operation: undefined }, said, tone, true));
}

function progressText(answer: Readonly<Record<string, unknown>>): string {
  const [matched, succeeded, lost] = ['matched', 'succeeded', 'failed'].map((name) => numberIn(answer, name));
  return `${numberText(succeeded ?? 0)} of ${numberText(matched ?? 0)}${lost ? `, ${numberText(lost)} failed` : ''}`;
}

function numberIn(answer: Readonly<Record<string, unknown>>, name: string): number {
  const value = answer[name];
  return typeof value === 'number' ? value : 0;
}

const wordsOf = ({ message, hint }: Problem): string => foreign(hint ? `${message} ${hint}` : message);

async function trying(url: string, say: (problem: Problem) => void, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    // Anything else is a defect, and ends the program with its words.
    if (!(error instanceof TocsinError)) throw error;
    say(problemOf(error, url));
  }
}

/** A refusal says first that it is one: what may be done is the server's to say. */
export function problemOf(error: TocsinError, url: string): Problem {
  const { message, hint } = failureOf(error, { url });
  const isForbidden = error instanceof UnauthorizedError && error.status === 403;
  return { message: isForbidden ? `Forbidden (403): ${message}` : message, hint };
}
