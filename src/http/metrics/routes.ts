/** Metrics for monitoring: as Prometheus reads them, and as JSON. */
import { scrape } from '../../across/metrics';
import { metrics as contract } from '../../contract/stats';
import { type AppContext, media, unredacted } from '../context';
import { oneOf, textParam } from '../request/query';
import { serve } from '../route';
import { exposition } from './prometheus';
import { renderMetrics } from './render';

const FORMATS = ['json', 'prometheus'] as const;
type Format = (typeof FORMATS)[number];

/** Routes from the root on: where scrapers look, and where clients of the protocol do. */
export const metricsRoutes = serve(contract, {
  scrape: (c) => metrics(c, 'prometheus'),
  show: (c) => metrics(c, 'json'),
});

async function metrics(c: AppContext, usual: Format) {
  const asked = textParam(c, 'format');
  const [format = takesText(c) ? 'prometheus' : usual] =
    oneOf(asked === undefined ? undefined : [asked], FORMATS, 'format') ?? [];
  const reading = await scrape(c.env, Date.now());
  if (format === 'json') return unredacted(c, renderMetrics(reading));
  return media(c, exposition(reading), 'text/plain');
}

/** Does the client ask for the text of Prometheus and for no JSON, as Prometheus and its kin do? */
function takesText(c: AppContext): boolean {
  const accepted = c.req.header('Accept')?.toLowerCase() ?? '';
  return /text\/plain|application\/openmetrics-text/.test(accepted) && !accepted.includes('json');
}
