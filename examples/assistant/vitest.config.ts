import { cloudflareTest } from '@cloudflare/vitest-pool-workers';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [cloudflareTest({ wrangler: { configPath: './wrangler.toml' } })],
  test: {
    // For tests that hang. A busy machine can take many times as long as yours.
    testTimeout: 60_000,
    // What handlers log is shown where a test fails.
    silent: 'passed-only',
  },
});
