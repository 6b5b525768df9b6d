import type * as contract from '../contract/tokens';
import type { SignalUrlOptions } from '../handler/types';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { pathTo, type Requests } from './requests';

export type TokenOptions = Named<contract.TokenRequest>;

export type Token = Named<contract.Token>;

export type SignalUrl = Named<contract.SignalUrl>;

/** Tokens for browsers, as `tocsin.tokens`. The queue needs `TOKEN_SECRET`. */
export interface Tokens {
  /**
   * Makes a token for a browser. Its key needs `data:read` for `read`, else `data:write`.
   * @throws {InvalidJobError}
   * @example
   * const { token } = await tocsin.tokens.create({ job: job.id, read: true, expiresIn: '1h' });
   */
  create(options: TokenOptions): Promise<Token>;
  /**
   * Makes a URL that lets a person send a signal to a job, as `ctx.signalUrl` does. The queue needs `PUBLIC_URL`.
   * @throws {InvalidJobError}
   */
  signalUrl(jobId: string, name: string, options: SignalUrlOptions): Promise<SignalUrl>;
}

export const createTokens = ({ ask }: Requests): Tokens => ({
  create: async (options) => ask('POST', '/tokens', 'token', 'the token', jsonOf(options, 'The token')),
  signalUrl: async (jobId, signal, { expires, ...options }) => {
    const body = jsonOf({ signal, ...options, expiresIn: expires }, 'The URL');
    return await ask('POST', pathTo`/jobs/${jobId}/tokens`, 'url', 'the URL', body);
  },
});
