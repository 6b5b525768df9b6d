/** Projects that are Workers of their own: what users of `tocsin/testing/vitest` write. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: ['examples/assistant', 'examples/newsletter', 'examples/order', 'test/testing/inside'],
    // What handlers log is shown where a test fails.
    silent: 'passed-only',
  },
});
