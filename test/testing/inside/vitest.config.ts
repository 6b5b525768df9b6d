import { cloudflareTest } from '@cloudflare/vitest-pool-workers';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [cloudflareTest({ wrangler: { configPath: './wrangler.toml' } })],
  // For tests that hang. A busy machine takes many times as long as one at rest.
  test: { testTimeout: 60_000 },
});
