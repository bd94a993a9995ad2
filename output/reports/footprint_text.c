/* SPDX-License-Identifier: MIT */
/* The memory of processes as text. */
#include <inttypes.h>
#include <string.h>

#include "output/labels/escape.h"
#include "output/reports/footprint_report.h"

enum { KIBIBYTE = 1024 };

/* In sums, and before a row's name. */
static const struct {
	const char *sum, *named;
} kind_texts[FOOTPRINT_KIND_COUNT] = {
	[FOOTPRINT_LUA_HEAP] = { "Lua heap", NULL },
	[FOOTPRINT_LUA_FREE] = { "free space in LuaJIT's segments", NULL },
	[FOOTPRINT_LUA_LARGE] = { "large blocks of LuaJIT's, of one VM or another", NULL },
	[FOOTPRINT_MCODE] = { "machine code of traces", NULL },
	[FOOTPRINT_MALLOC] = { "malloc()", NULL },
	[FOOTPRINT_MALLOC_FREE] = { "free space in malloc()'s arenas", NULL },
	[FOOTPRINT_MALLOC_LARGE] = { "large blocks of malloc()", NULL },
	[FOOTPRINT_ZONE] = { "zones that processes share", "zone" },
	[FOOTPRINT_SHARED] = { "other shared memory", "shared memory" },
	[FOOTPRINT_STACK] = { "stacks", "stacks" },
	[FOOTPRINT_CODE] = { "code of files", "code of" },
	[FOOTPRINT_DATA] = { "data of files", "data of" },
	[FOOTPRINT_FILE] = { "other parts of files", "file" },
	[FOOTPRINT_ANONYMOUS] = { "other anonymous memory", "other anonymous memory" },
	[FOOTPRINT_KERNEL] = { "mapped by the kernel", "the kernel's" },
};

static double kib(uint64_t bytes)
{
	return (double)bytes / KIBIBYTE;
}

static void print_escaped(FILE *out, const char *text)
{
	escape_write(ESCAPE_PLAIN, text, out);
}

static void print_figures(FILE *out, uint64_t rss, uint64_t pss, uint64_t total)
{
	fprintf(out, "  %12.1f  %12.1f  %6.2f  ", kib(rss), kib(pss),
		total ? 100 * (double)rss / (double)total : 0);
}

static void print_row(FILE *out, const struct footprint *footprint, const struct footprint_row *row)
{
	print_figures(out, row->rss, row->pss, footprint->rss);
	fputs(row->name ? kind_texts[row->kind].named : kind_texts[row->kind].sum, out);
	if (row->name) {
		putc(' ', out);
		print_escaped(out, row->name);
	}
	if (row->g)
		fprintf(out, ", VM 0x%" PRIx64, row->g);
	if (row->count > 1)
		fprintf(out, " (%zu)", row->count);
	putc('\n', out);
}

/*---- What is known besides ----*/

static void print_own_allocator(FILE *out, const struct footprint_vm *vm)
{
	fprintf(out, "; %zu segment%s of %.1f KiB", vm->segment_count, vm->segment_count == 1 ? "" : "s",
		kib(vm->segment_bytes));
	if (vm->segments_untold)
		fprintf(out, ", in %zu of them the free space is not known", vm->segments_untold);
	else
		fprintf(out, ", of which %.1f KiB are free", kib(vm->free_bytes));
	if (vm->large_count)
		fprintf(out, "; %zu large block%s of %.1f KiB", vm->large_count,
			vm->large_count == 1 ? "" : "s", kib(vm->large_bytes));
}

static void print_vm(FILE *out, const struct footprint_vm *vm)
{
	fprintf(out, "  VM 0x%" PRIx64 " in ", vm->g);
	print_escaped(out, vm->module);
	if (vm->knows_total)
		fprintf(out, ": gc.total is %.1f KiB", kib(vm->gc_total));
	else
		fputs(": gc.total is not known", out);
	switch (vm->allocator) {
	case FOOTPRINT_LJ_ALLOC: print_own_allocator(out, vm); break;
	case FOOTPRINT_LJ_ALLOC_OTHERS: fputs(", in the segments of a VM above", out); break;
	case FOOTPRINT_FOREIGN:
		fputs("; malloc() or the program gives it its memory, which is in the rows of these", out);
		break;
	case FOOTPRINT_ALLOCATOR_UNKNOWN:
	case FOOTPRINT_ALLOCATOR_COUNT: fputs("; where it has its memory could not be read", out); break;
	}
	putc('\n', out);
}

static void print_malloc(FILE *out, const struct footprint_malloc *malloc)
{
	if (malloc->name)
		fprintf(out, "  malloc() is %s's", malloc->name);
	else
		fputs("  whose malloc() it uses is not known", out);
	if (malloc->arenas)
		fprintf(out, "; %zu arena%s", malloc->arenas, malloc->arenas == 1 ? "" : "s");
	if (malloc->arena_bytes)
		fprintf(out, ": %.1f KiB, of which %.1f KiB are free", kib(malloc->arena_bytes),
			kib(malloc->free_bytes));
	if (malloc->pieces_untold)
		fprintf(out, "; in %zu piece%s the free space is not known", malloc->pieces_untold,
			malloc->pieces_untold == 1 ? "" : "s");
	/* Of other libraries nothing is known but their mappings. */
	if (!malloc->name || strcmp(malloc->name, "glibc") != 0)
		fputs("; its memory is part of malloc() and of other anonymous memory above", out);
	putc('\n', out);
}

static void print_pool(FILE *out, const struct footprint_pool *pool)
{
	if (pool->is_known) {
		fprintf(out, "  nginx's configuration: %.1f KiB in its pool, of which %.1f KiB are not used",
			kib(pool->bytes), kib(pool->unused));
		if (pool->large)
			fprintf(out, "; %zu large block%s besides", pool->large, pool->large == 1 ? "" : "s");
		putc('\n', out);
	}
	if (pool->is_nginx)
		fputs("  nginx's pools of connections and requests cannot be told apart: they are in malloc()'s rows\n",
		      out);
}

static void print_zone(FILE *out, const struct footprint_zone *zone)
{
	fputs("  ", out);
	print_escaped(out, zone->kind ? zone->kind : "zone");
	putc(' ', out);
	print_escaped(out, zone->name ? zone->name : "without a name");
	fprintf(out, ": %.1f KiB", kib(zone->size));
	if (zone->knows_free)
		fprintf(out, ", %.1f KiB used, %.1f KiB free", kib(zone->usable - zone->free),
			kib(zone->free));
	putc('\n', out);
}

static void print_besides(FILE *out, const struct footprint *footprint)
{
	for (size_t i = 0; i < footprint->vm_count; i++)
		print_vm(out, &footprint->vms[i]);
	for (size_t i = 0; i < footprint->zone_count; i++)
		print_zone(out, &footprint->zones[i]);
	print_malloc(out, &footprint->malloc);
	print_pool(out, &footprint->pool);
	if (footprint->swap)
		fprintf(out, "  %.1f KiB more are swapped out\n", kib(footprint->swap));
	if (footprint->hugetlb)
		fprintf(out, "  %.1f KiB more are in pages of hugetlbfs, which RSS leaves out\n",
			kib(footprint->hugetlb));
	if (footprint->looked)
		fprintf(out, "  %.1f KiB of files are in the RSS because ljspy has read them there\n",
			kib(footprint->looked));
	if (footprint->unconfirmed)
		fputs("  LuaJIT's part could not be told: its objects did not hold still, its layout is not known, or its code could not be read\n",
		      out);
	if (footprint->changed)
		fputs("  The process changed its memory meanwhile: rows may be some pages off, their sum is not\n",
		      out);
}

void footprint_print(FILE *out, const struct footprint *footprint)
{
	fprintf(out, "Process %d", (int)footprint->pid);
	if (footprint->name) {
		putc(' ', out);
		print_escaped(out, footprint->name);
	}
	fputs("\n       RSS KiB       PSS KiB       %  what\n", out);
	for (size_t i = 0; i < footprint->row_count; i++)
		print_row(out, footprint, &footprint->rows[i]);
	print_figures(out, footprint->rss, footprint->pss, footprint->rss);
	fputs("all\n", out);
	print_besides(out, footprint);
}

/* Sums of PSS count each shared page once among these processes, so they lead. */
void footprint_print_sum(FILE *out, struct footprint *const *footprints, size_t count)
{
	uint64_t rss[FOOTPRINT_KIND_COUNT] = { 0 }, pss[FOOTPRINT_KIND_COUNT] = { 0 };
	uint64_t rss_total = 0, pss_total = 0;

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < footprints[i]->row_count; j++) {
			const struct footprint_row *row = &footprints[i]->rows[j];

			rss[row->kind] += row->rss;
			pss[row->kind] += row->pss;
		}
		rss_total += footprints[i]->rss;
		pss_total += footprints[i]->pss;
	}
	fprintf(out, "%zu processes: PSS is what they take of RAM, RSS counts shared pages once for each\n",
		count);
	fputs("       RSS KiB       PSS KiB   PSS %  what\n", out);
	for (int kind = 0; kind < FOOTPRINT_KIND_COUNT; kind++)
		if (rss[kind])
			fprintf(out, "  %12.1f  %12.1f  %6.2f  %s\n", kib(rss[kind]), kib(pss[kind]),
				pss_total ? 100 * (double)pss[kind] / (double)pss_total : 0,
				kind_texts[kind].sum);
	fprintf(out, "  %12.1f  %12.1f  %6.2f  all\n", kib(rss_total), kib(pss_total), 100.0);
}
