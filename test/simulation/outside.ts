/** Other objects, as far as the simulated one can tell: they are asked, and answer when the simulation lets them, if at all. */
import { ApiError } from '../../src/job/errors';
import { BUSY } from './world';

/** A question that waits for its answer. */
export interface Question {
  /** What is asked, and about what. */
  what: string;
  about: readonly unknown[];
  answer(value: unknown): void;
  fail(error: Error): void;
}

export class Outside {
  readonly questions: Question[] = [];

  /** @param withheld what keeps something under way in the object that asks */
  constructor(private readonly withheld: Set<unknown>) {}

  ask<T>(what: string, ...about: unknown[]): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const ended = () => {
        this.questions.splice(this.questions.indexOf(question), 1);
        this.withheld.delete(question);
      };
      const question: Question = {
        ...{ what, about },
        answer: (value) => {
          ended();
          resolve(value as T);
        },
        fail: (error) => {
          ended();
          reject(error);
        },
      };
      this.questions.push(question);
      this.withheld.add(question);
    });
  }

  pick(pick: number, what?: string): Question | undefined {
    const some = what === undefined ? this.questions : this.questions.filter((question) => question.what === what);
    return some[pick % Math.max(1, some.length)];
  }
}

/** They cannot say now. */
export const busy = (): ApiError => new ApiError(BUSY);

/** They have done what was asked, and nobody hears of it. */
export const lost = (): Error => new Error('the answer is lost');
