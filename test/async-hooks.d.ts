/** The part of Node's module that the tests of tracing use. */
declare module 'node:async_hooks' {
  export class AsyncLocalStorage<T> {
    getStore(): T | undefined;
    run<R>(store: T, run: () => R): R;
  }
}
