/** The jobs of the shop and their arguments, shared by producers and handlers. */
import type { TocsinClient } from '../../../src/client';

export interface Order {
  /** The shop's own number. */
  number: string;
  email: string;
  card: string;
  cents: number;
  items: string[];
}

export interface ShopJobs {
  'order.check': [order: Order];
  'payment.charge': [charge: Pick<Order, 'number' | 'card' | 'cents'>];
  'stock.reserve': [wanted: Pick<Order, 'number' | 'items'>];
  'mail.send': [mail: { to: string; template: string }];
  'catalogue.index': [];
  'report.build': [report: { of: 'sales' | 'stock' }];
}

/** A client that knows these jobs. */
export type Shop = TocsinClient<ShopJobs>;

/** All charges count together under this key, because the payment provider limits them. */
export const PAYMENTS = 'payment-provider';
