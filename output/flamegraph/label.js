// SPDX-License-Identifier: MIT
/*
 * Shorten labels: the name comes first and then the end of the file, for two
 * functions of one deep folder differ there. output/labels/short_label.c does
 * the same for viewers without scripts.
 */

const TAIL_MIN = 4;	/* characters of a file's name that are worth showing */

/* The longest of "begin + the last n of text" that fits, at least least characters of it; "" if none does. */
function longestTail(begin, text, least, fits) {
	const characters = Array.from(text);
	let low = 0, high = characters.length;

	while (low < high) {
		const middle = (low + high + 1) >> 1;

		if (fits(begin + characters.slice(-middle).join("")))
			low = middle;
		else
			high = middle - 1;
	}
	return low >= least ? begin + characters.slice(-low).join("") : "";
}

/* The longest of text without its middle that fits; "" if none does. */
function withoutMiddle(text, fits) {
	const characters = Array.from(text);
	const cut = (kept) => {
		const tail = kept >= 8 ? Math.floor(kept * 0.4) : 0;

		return characters.slice(0, kept - tail).join("") + "…" + (tail ? characters.slice(-tail).join("") : "");
	};
	let low = 0, high = characters.length - 1;

	while (low < high) {
		const middle = (low + high + 1) >> 1;

		if (fits(cut(middle)))
			low = middle;
		else
			high = middle - 1;
	}
	return low > 0 ? cut(low) : "";
}

/* A path after begin, without the folders that do not fit; "" if not even some of the file's name fits. */
function shortPath(begin, path, fits) {
	if (fits(begin + path))
		return begin + path;
	for (let slash = path.indexOf("/", 1); slash >= 0; slash = path.indexOf("/", slash + 1)) {
		if (fits(begin + "…" + path.slice(slash)))
			return begin + "…" + path.slice(slash);
	}
	return longestTail(begin + "…", path.slice(path.lastIndexOf("/") + 1), TAIL_MIN, fits);
}

/* A label in the room for which fits() tells. */
function shortLabel({ name, place }, fits) {
	const whole = place ? name + " " + place : name;
	const unnamed = name.match(/^(function <)(.*)$/s);

	if (fits(whole))
		return whole;
	if (place && fits(name))
		return (place[0] !== "[" && shortPath(name + " ", place, fits)) || name;
	return unnamed && shortPath(unnamed[1], unnamed[2], fits) || withoutMiddle(name, fits);
}
