/** What is known of the types that handlers take of a queue's jobs. */
export interface Handlers {
  /** Is any job of this queue pushed? */
  readonly pushesAny: boolean;
  /** Is a job of this type pushed? @param bodies of the jobs, as text */
  isPushed(type: string, bodies: readonly string[]): boolean;
  /** A question after a sentence about the type, where one that is taken is nearly the same; else empty. */
  hint(type: string): string;
  /** What a producer of the type should know; undefined where all is well. */
  warning(type: string): string | undefined;
}

/** Of a queue that nobody has handlers for, or that only might come into being. */
export const NO_HANDLERS: Handlers = {
  pushesAny: false,
  isPushed: () => false,
  hint: () => '',
  warning: () => undefined,
};
