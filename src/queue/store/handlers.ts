/** What is known about the types of a queue's jobs that handlers take. */
export interface Handlers {
  readonly pushesAny: boolean;
  /** Is a job of this type pushed? @param bodies of the jobs, as text */
  isPushed(type: string, bodies: readonly string[]): boolean;
  /** A question that follows a sentence about the type, if a similar type is taken; else empty. */
  hint(type: string): string;
  /** What a producer of the type should know; undefined when all is well. */
  warning(type: string): string | undefined;
}

/** For a queue without handlers, or one that does not exist yet. */
export const NO_HANDLERS: Handlers = {
  pushesAny: false,
  isPushed: () => false,
  hint: () => '',
  warning: () => undefined,
};
